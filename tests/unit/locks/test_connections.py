"""Connections to etcd: what an answer looks like, and that no request gets the answer of another one."""

from __future__ import annotations

import asyncio
import select
import socket
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from reside.locks import EtcdUnavailable
from reside.locks.connections import Connections
from reside.locks.etcd import Etcd
from reside.locks.exchange import Answer, Exchange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    _Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

pytestmark = pytest.mark.anyio

OK = b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"ID":7}'
CHUNKED = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{"ID\r\n4;a=b\r\n":7}\r\n0\r\nTrailer: x\r\n\r\n'


def asked() -> Exchange:
    """Return an exchange that has sent a request."""
    made = Exchange()
    made.ask(urlsplit("http://etcd:2379"), "/v3/x", b"{}", None)
    return made


@pytest.mark.parametrize("whole", [OK, CHUNKED], ids=["length", "chunks"])
def test_an_answer_is_complete_with_its_last_byte_and_not_before(whole: bytes) -> None:
    exchange = asked()
    found = [exchange.receive(whole[index : index + 1]) for index in range(len(whole))]
    assert found == [*[None] * (len(whole) - 1), Answer(200, '{"ID":7}', keeps=True)]


@pytest.mark.parametrize(
    "data",
    [
        OK.replace(b"OK\r\n", b"OK\r\nConnection: Close\r\n"),
        OK.replace(b"HTTP/1.1", b"HTTP/1.0"),
        OK + b"HTTP/1.1 200 OK\r\n",
    ],
    ids=["close", "old", "more than was asked for"],
)
def test_after_such_an_answer_the_connection_is_not_used_again(data: bytes) -> None:
    assert asked().receive(data) == Answer(200, '{"ID":7}', keeps=False)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        CHUNKED.replace(b"\r\n4\r\n", b"\r\n-4\r\n"),
        CHUNKED.replace(b"\r\n4\r\n", b"\r\nx\r\n"),
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1024 * 1024),
    ],
)
def test_what_is_no_answer_of_etcd_is_refused(data: bytes) -> None:
    with pytest.raises(ConnectionError, match="the answer is not HTTP"):
        asked().receive(data)


def test_an_answer_that_is_too_long_is_refused() -> None:
    exchange, size = asked(), 1024 * 1024
    exchange.receive(f"HTTP/1.1 200 OK\r\nContent-Length: {32 * size}\r\n\r\n".encode())
    for _ in range(16):
        assert exchange.receive(b"x" * size) is None
    with pytest.raises(ConnectionError, match="the answer has more than"):
        exchange.receive(b"x")


class Server:
    """Serves HTTP on loopback with a scripted handler of each connection."""

    def __init__(self, handle: _Handler) -> None:
        self._handle = handle
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            await self._handle(reader, writer)
        except asyncio.IncompleteReadError:
            pass  # the client has closed the connection
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[Server]:
    made = Server(handle)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    made = Connections()
    yield made
    await made.aclose()


async def request(reader: asyncio.StreamReader) -> tuple[str, str]:
    """Return head and body of a request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(int(line.partition(":")[2]) for line in head.splitlines() if line.startswith("Content-Length:"))
    return head, (await reader.readexactly(length)).decode()


def answer(text: str) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each request with its body."""
    while True:
        _, body = await request(reader)
        writer.write(answer(body))


async def test_requests_one_after_the_other_use_one_connection(connections: Connections) -> None:
    async with serving(echo) as server:
        for number in range(3):
            found = await connections.post(server.url, "/v3/x", str(number).encode(), token=None, timeout=60)
            assert found.text == str(number)
        assert server.connections == 1


async def test_requests_at_the_same_time_get_their_own_answers(connections: Connections) -> None:
    async with serving(echo) as server:
        found = await asyncio.gather(
            *(connections.post(server.url, "/v3/x", str(n).encode(), token=None, timeout=60) for n in range(100))
        )
        assert [each.text for each in found] == [str(number) for number in range(100)]
        assert server.connections <= 64


async def test_the_answer_to_a_cancelled_request_reaches_no_other_request(connections: Connections) -> None:
    asked, late = asyncio.Event(), asyncio.Event()

    async def first_is_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, body = await request(reader)
        if body == "first":
            asked.set()
            await late.wait()
        writer.write(answer(body))

    async with serving(first_is_late) as server:
        first = asyncio.create_task(connections.post(server.url, "/v3/x", b"first", token=None, timeout=60))
        await asked.wait()
        first.cancel()
        await asyncio.wait([first])
        late.set()
        assert (await connections.post(server.url, "/v3/x", b"second", token=None, timeout=60)).text == "second"
        assert server.connections == 2


async def test_a_connection_that_the_member_has_closed_is_not_used_again(connections: Connections) -> None:
    """The event loop has not seen the end of the connection yet when the next request comes."""
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def serve_each_once() -> None:
        for _ in range(2):
            peer, _ = listener.accept()
            peer.recv(4096)
            peer.sendall(answer("{}"))
            peer.close()

    serving = threading.Thread(target=serve_each_once)
    serving.start()
    try:
        assert (await connections.post(url, "/v3/x", b"{}", token=None, timeout=60)).text == "{}"
        [first] = connections._all
        assert first._transport is not None
        sock = first._transport.get_extra_info("socket")
        select.select([sock], [], [], 5)  # blocks the event loop until the end has arrived
        assert not first.is_closed
        assert (await connections.post(url, "/v3/x", b"{}", token=None, timeout=60)).text == "{}"
    finally:
        listener.close()
        await asyncio.to_thread(serving.join)


async def test_a_member_that_does_not_answer_in_time_is_unavailable(connections: Connections) -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(silent) as server:
        with pytest.raises(TimeoutError):
            await connections.post(server.url, "/v3/x", b"{}", token=None, timeout=0.05)


async def test_a_member_that_hangs_up_is_an_error_that_names_it() -> None:
    async def rude(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await request(reader)

    async with serving(rude) as server:
        client = Etcd([server.url])
        with pytest.raises(EtcdUnavailable, match=r"etcd at http://127\.0\.0\.1:\d+ does not respond: ConnectionError"):
            await client.grant(30)
        await client.aclose()


@pytest.mark.parametrize("token", ["a\r\nX: y", "a\nb", "é"])
async def test_a_token_can_not_add_a_header(connections: Connections, token: str) -> None:
    async with serving(echo) as server:
        with pytest.raises(ConnectionError, match="malformed"):
            await connections.post(server.url, "/v3/x", b"{}", token=token, timeout=60)


async def test_the_token_of_a_login_is_sent(connections: Connections) -> None:
    async def head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found, _ = await request(reader)
        writer.write(answer(found))

    async with serving(head) as server:
        found = await connections.post(server.url, "/v3/x", b"{}", token="simple.1", timeout=60)
    assert "Authorization: simple.1" in found.text.splitlines()
