"""The WebSocket of the sync protocol with servers that behave well and badly."""

from __future__ import annotations

import asyncio
import gc
import ssl
import threading
from collections import Counter
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from reside.jazz.sync.socket import Socket, open_socket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

pytestmark = pytest.mark.anyio
_WITHIN_S = 10.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def _server(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[str]:
    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handle(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


async def _accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ServerProtocol:
    protocol = ServerProtocol()
    protocol.receive_data(await reader.readuntil(b"\r\n\r\n"))
    request = protocol.events_received()[0]
    assert isinstance(request, Request)
    protocol.send_response(protocol.accept(request))
    writer.writelines(protocol.data_to_send())
    return protocol


async def _open(url: str, frames: list[str | None]) -> Socket:
    async with asyncio.timeout(_WITHIN_S):
        return await open_socket(url, headers={}, on_frame=frames.append, on_room=lambda: None)


async def _ended(socket: Socket) -> str:
    async with asyncio.timeout(_WITHIN_S):
        return await socket.closed


async def _send_lines(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a hundred lines in a frame, once the client has sent something."""
    protocol = await _accept(reader, writer)
    await reader.read(1)
    protocol.send_text("\n".join(map(str, range(100))).encode())
    writer.writelines(protocol.data_to_send())
    await reader.read()


def _work(seconds: float) -> None:
    """Keep the event loop busy."""
    end = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < end:
        pass


async def test_messages_arrive_complete_and_in_order_however_they_are_fragmented() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = await _accept(reader, writer)
        protocol.send_text(b"one")
        protocol.send_text("tw\u00f6 ".encode()[:3], fin=False)
        protocol.send_ping(b"are you there")
        protocol.send_continuation("tw\u00f6 ".encode()[3:], fin=False)
        protocol.send_continuation(b"end", fin=True)
        protocol.send_binary(b"\0")
        protocol.send_close(1001, "bye")
        for byte in b"".join(protocol.data_to_send()):
            writer.write(bytes([byte]))
            await writer.drain()
        await reader.read()

    frames: list[str | None] = []
    async with _server(handle) as url:
        socket = await _open(url, frames)
        assert "1001" in await _ended(socket)
    assert frames == ["one", "tw\u00f6 end", None]


async def test_sent_messages_arrive_and_the_close_handshake_completes() -> None:
    heard: list[object] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = await _accept(reader, writer)
        while data := await reader.read(1000):
            protocol.receive_data(data)
            heard.extend(
                (event.opcode, bytes(event.data)) for event in protocol.events_received() if isinstance(event, Frame)
            )
            writer.writelines(part for part in protocol.data_to_send() if part)
            if protocol.close_expected():
                return

    async with _server(handle) as url:
        socket = await _open(url, [])
        socket.send("hello")
        socket.send("world \U0001f30d")
        await socket.close()
        await _ended(socket)
        socket.send("after the end")
    assert heard[:2] == [(Opcode.TEXT, b"hello"), (Opcode.TEXT, "world \U0001f30d".encode())]
    assert heard[2][0] is Opcode.CLOSE  # type: ignore[index] # a pair, as above
    assert len(heard) == 3


async def test_a_slow_server_is_not_flooded() -> None:
    go = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _accept(reader, writer)
        await go.wait()
        while await reader.read(100_000):
            pass

    room = asyncio.Event()
    async with _server(handle) as url, asyncio.timeout(_WITHIN_S):
        socket = await open_socket(url, headers={}, on_frame=print, on_room=room.set)
        while not socket.is_full:
            socket.send("x" * 100_000)
        go.set()
        await room.wait()
        assert not socket.is_full
        await socket.close()


@pytest.mark.parametrize("per_frame", [1, 40])
async def test_a_burst_of_messages_is_processed_in_several_rounds_of_the_event_loop(per_frame: int) -> None:
    """Each takes time to verify, and other tasks need the event loop meanwhile."""
    messages = [f"{number} {'x' * 300}" for number in range(400)]
    rounds, loop, arrived = 0, asyncio.get_running_loop(), list[tuple[int, int, str]]()

    def next_round() -> None:
        nonlocal rounds, counting
        rounds += 1
        counting = loop.call_soon(next_round)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = await _accept(reader, writer)
        for start in range(0, len(messages), per_frame):
            protocol.send_text("\n".join(messages[start : start + per_frame]).encode())
        protocol.send_close(1000, "done")
        writer.write(b"".join(protocol.data_to_send()))
        await reader.read(1)

    def process(text: str | None) -> None:
        assert text is not None
        lines = text.split("\n")
        arrived.extend((rounds, len(lines), line) for line in lines)
        _work(0.0005 * len(lines))

    counting: asyncio.Handle = loop.call_soon(next_round)
    async with _server(handle) as url, asyncio.timeout(_WITHIN_S):
        socket = await open_socket(url, headers={}, on_frame=process, on_room=lambda: None)
        await _ended(socket)
    counting.cancel()
    assert [line for _, _, line in arrived] == messages
    assert max(Counter(seen for seen, _, _ in arrived).values()) <= 10 / 0.5 + 8
    assert max(count for _, count, _ in arrived) == min(per_frame, 8)


async def test_an_error_in_a_later_round_ends_the_connection_and_is_raised() -> None:
    arrived: list[str | None] = []

    def refuse(text: str | None) -> None:
        arrived.append(text)
        if len(arrived) == 3:
            raise ZeroDivisionError("a bug")
        _work(0.02)

    async with _server(_send_lines) as url, asyncio.timeout(_WITHIN_S):
        socket = await open_socket(url, headers={}, on_frame=refuse, on_room=lambda: None)
        socket.send("ready")
        with pytest.raises(ZeroDivisionError):
            await socket.closed
    assert len(arrived) == 3


async def test_a_server_is_not_silent_while_its_messages_wait() -> None:
    """Nothing is read meanwhile, and a connection on which nothing arrives for 10 s is closed."""
    seen, done = list[float](), asyncio.Event()

    def slow(_text: str | None) -> None:
        seen.append(socket.received_at)
        _work(0.02)
        if len(seen) == 5:
            done.set()

    async with _server(_send_lines) as url, asyncio.timeout(_WITHIN_S):
        socket = await open_socket(url, headers={}, on_frame=slow, on_room=lambda: None)
        socket.send("ready")
        await done.wait()
        await socket.close()
    assert all(later - before >= 0.02 for before, later in pairwise(seen))


async def test_nothing_is_delivered_after_the_end() -> None:
    first, delivered = asyncio.Event(), list[str | None]()

    def slow(text: str | None) -> None:
        delivered.append(text)
        first.set()
        _work(0.02)

    async with _server(_send_lines) as url, asyncio.timeout(_WITHIN_S):
        socket = await open_socket(url, headers={}, on_frame=slow, on_room=lambda: None)
        socket.send("ready")
        await first.wait()
        socket._transport.abort()  # type: ignore[union-attr] # it is connected
        before = list(delivered)
        await _ended(socket)
        await _rounds(20)
    assert delivered == before
    assert socket._waiting


@pytest.mark.parametrize(
    "answer",
    [b"", b"HTTP/1.1 503 Service Unavailable\r\n\r\n", b"\x00\x01 not http\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nhello"],
)
async def test_a_server_without_the_websocket_handshake_is_refused(answer: bytes) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with _server(handle) as url:
        with pytest.raises(ConnectionError):
            await _open(url, [])


async def test_an_opening_can_be_cancelled_in_every_round_of_the_event_loop() -> None:
    """A close during a reconnect left an error that nobody received; the event loop reported it later."""
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reported.append(context))

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionResetError):
            await _accept(reader, writer)
            await reader.read(1)

    async with _server(handle) as url:
        for rounds in range(100):
            opening = asyncio.create_task(_open(url, []))
            await _rounds(rounds)
            opening.cancel()
            await asyncio.wait([opening])
            if not opening.cancelled():
                await opening.result().close()
                break
            del opening
            await _rounds(10)  # the end of the connection
            gc.collect()
    assert rounds in range(3, 99)
    assert reported == []


async def _rounds(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("broken", [b"\x81\x02\xff\xff", b"\x85\x00", b"\x80\x00", b"\x81\x7e\x00"])
async def test_an_invalid_frame_ends_the_connection_with_the_reason(broken: bytes) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = await _accept(reader, writer)
        protocol.send_text(b"good")
        writer.writelines([*protocol.data_to_send(), broken])
        writer.write_eof()
        await reader.read()

    frames: list[str | None] = []
    async with _server(handle) as url:
        reason = await _ended(await _open(url, frames))
    assert frames == ["good"]
    assert reason.startswith("closed: ")


async def test_an_error_in_the_receiver_ends_the_connection_and_is_raised() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocol = await _accept(reader, writer)
        protocol.send_text(b"news")
        writer.writelines(protocol.data_to_send())
        await reader.read()

    def refuse(_frame: str | None) -> None:
        raise ZeroDivisionError("a bug")

    caught: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: caught.append(context["exception"]))
    async with _server(handle) as url, asyncio.timeout(_WITHIN_S):
        socket = await open_socket(url, headers={}, on_frame=refuse, on_room=lambda: None)
        with pytest.raises(ZeroDivisionError):
            await socket.closed
    assert [type(error) for error in caught] == [ZeroDivisionError]


async def test_a_server_that_ignores_the_close_does_not_delay_it() -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _accept(reader, writer)
        await reader.read()

    async with _server(handle) as url, asyncio.timeout(_WITHIN_S):
        socket = await _open(url, [])
        await socket.close()
        await socket.closed


async def test_certificate_authorities_are_read_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[threading.Thread] = []

    def read() -> ssl.SSLContext:
        readers.append(threading.current_thread())
        raise OSError("no authorities here")

    monkeypatch.setattr(ssl, "create_default_context", read)
    with pytest.raises(OSError, match="no authorities here"):
        await open_socket("wss://127.0.0.1:1", headers={}, on_frame=print, on_room=lambda: None)
    assert len(readers) == 1
    assert threading.main_thread() not in readers
