"""A WebSocket connection as an asyncio protocol.

Frames are written in the event-loop turn in which they are sent, and delivered in the one in which they arrive, or in
the next ones if they take long to process. No task runs between the network and the node, unlike in
`websockets.asyncio`. The WebSocket protocol is the one of `websockets`, without I/O.
"""

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake, InvalidURI
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.uri import WebSocketURI, parse_uri

_CLOSE_TIMEOUT_S: Final = 1.0
"""Short, because nothing is lost if the server does not answer a close."""
_READ_BYTES: Final = 64 * 1024
"""The size of the reused read buffer."""
_SLICE_S: Final = 0.01
"""Seconds after which other tasks run, even if more messages have arrived: with each, a signature is verified."""
_LINES: Final = 8
"""Messages of the sync protocol that are delivered together. The server joins up to 25 kB of them in a frame."""
_log = logging.getLogger(__name__)
_log.setLevel(logging.INFO)  # at DEBUG, `websockets` logs the opening request, whose address may contain a proof
_TEXT_PARTS: Final = (Opcode.TEXT, Opcode.CONT)


class Socket(asyncio.BufferedProtocol):
    """A connection; created by `open_socket`.

    Args:
        uri: the server.
        headers: sent with the opening request.
        on_frame: called with the text of each message, or with a few of its lines; with None for a binary message.
        on_room: called when more can be written after `is_full`.

    Attributes:
        closed: done when the connection has ended; its result is the reason.
        received_at: time on the event loop's clock at which data last arrived, or waited to be processed.
    """

    def __init__(
        self,
        uri: WebSocketURI,
        headers: Mapping[str, str],
        on_frame: Callable[[str | None], None],
        on_room: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._headers = headers
        self._on_frame = on_frame
        self._on_room = on_room
        self._ws = ClientProtocol(uri, max_size=None, logger=_log)
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._waiting: deque[str | None] = deque()
        self._failure: Exception | None = None
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.closed: asyncio.Future[str] = self._loop.create_future()
        self.received_at = self._loop.time()
        self.is_full = False

    def send(self, text: str) -> None:
        """Write a message; do nothing if the connection has ended."""
        if self._ws.state is OPEN:
            self._ws.send_text(text.encode())
            self._write()

    async def close(self) -> None:
        """Close the connection, with a closing handshake if the server answers in time."""
        if self._ws.state is OPEN:
            self._ws.send_close(CloseCode.NORMAL_CLOSURE)
            self._write()
            await asyncio.wait([self.closed], timeout=_CLOSE_TIMEOUT_S)
        if self._transport is not None:
            self._transport.abort()

    # Methods that the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the opening request."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass
        request = self._ws.connect()
        request.headers.update(self._headers)
        self._ws.send_request(request)
        self._write()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the protocol's signature
        """Return the buffer for the next bytes."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Process received bytes: the answer to the opening request, then frames."""
        self.received_at = self._loop.time()
        self._ws.receive_data(bytes(self._buffer[:nbytes]))
        for event in self._ws.events_received():
            if isinstance(event, Frame):
                self._take(event)
            elif isinstance(event, Response) and self._ws.handshake_exc is None and not self.opened.done():
                self.opened.set_result(None)
        self._deliver()
        self._write()
        if self._ws.close_expected() and self._transport is not None:
            self._loop.call_later(_CLOSE_TIMEOUT_S, self._transport.abort)

    def eof_received(self) -> None:
        """Process the end of the server's stream."""
        self._ws.receive_eof()
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        """Process the end of the connection. An error other than the network's is raised where `closed` is awaited."""
        exc = self._failure or exc
        self._ws.receive_eof()
        if not self.opened.done():
            self.opened.set_exception(self._ws.handshake_exc or exc or InvalidHandshake("the connection ended"))
            self.opened.exception()  # a cancelled `open_socket` does not receive it, which is no error
        if exc is not None and not isinstance(exc, OSError):
            self.closed.set_exception(exc)
        else:
            self.closed.set_result(f"{type(exc).__name__}: {exc}" if exc else f"closed: {self._ws.close_exc}")

    def pause_writing(self) -> None:
        """Note that the write buffer is full."""
        self.is_full = True

    def resume_writing(self) -> None:
        """Note that the write buffer has room again."""
        self.is_full = False
        self._on_room()

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.BINARY:
            self._waiting.append(None)
        elif frame.opcode in _TEXT_PARTS:
            self._parts.append(bytes(frame.data))
            if frame.fin:
                whole, self._parts = b"".join(self._parts), []
                try:
                    text = whole.decode()
                except UnicodeDecodeError:
                    self._ws.fail(CloseCode.INVALID_DATA, "not UTF-8")
                else:
                    self._waiting.extend(_pieces(text))

    def _deliver(self) -> None:
        """Deliver what has arrived; after `_SLICE_S`, go on in the next round of the event loop, and read no more."""
        end = self._loop.time() + _SLICE_S
        while self._waiting:
            self._on_frame(self._waiting.popleft())
            if self._waiting and self._loop.time() > end and self._transport is not None:
                self._transport.pause_reading()
                self._loop.call_soon(self._continue)
                return

    def _continue(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        self.received_at = self._loop.time()  # the server is not silent: it is not read
        try:
            self._deliver()
        except Exception as error:  # noqa: BLE001 - as from `buffer_updated`, it ends the connection
            self._failure = error
            self._transport.abort()
        else:
            if not self._waiting:
                self._transport.resume_reading()

    def _write(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        for data in self._ws.data_to_send():
            if data:
                self._transport.write(data)
            elif self._transport.can_write_eof():
                self._transport.write_eof()


def _pieces(text: str) -> Iterator[str]:
    """Return the lines of a message, a few at a time."""
    lines = text.split("\n")
    for start in range(0, len(lines), _LINES):
        yield "\n".join(lines[start : start + _LINES])


async def open_socket(url: str, **arguments: Any) -> Socket:
    """Connect; the arguments are those of `Socket`.

    Raises:
        ValueError: the URL is malformed.
        OSError: the server can't be reached, or is not a WebSocket server.
    """
    try:
        uri = parse_uri(url)
    except InvalidURI:
        raise ValueError("not the URL of a WebSocket") from None
    tls = await asyncio.to_thread(ssl.create_default_context) if uri.secure else None  # reads a hundred certificates
    loop = asyncio.get_running_loop()
    _, socket = await loop.create_connection(lambda: Socket(uri, **arguments), uri.host, uri.port, ssl=tls)
    try:
        await socket.opened
    except BaseException as error:
        await socket.close()
        if isinstance(error, InvalidHandshake):
            raise ConnectionError(str(error)) from error
        raise
    return socket
