"""A WebSocket connection as an asyncio protocol.

Frames are delivered and written in the event-loop turn in which they arrive or are sent. No task runs between the
network and the node, unlike in `websockets.asyncio`. The WebSocket protocol is the one of `websockets`, without I/O.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
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
"""The size of the reused read buffer. What fills it is processed in one turn of the event loop, in a few milliseconds,
unless a single message is larger."""
_log = logging.getLogger(__name__)
_log.setLevel(logging.INFO)  # at DEBUG, `websockets` logs the opening request, whose address may contain a proof
_TEXT_PARTS: Final = (Opcode.TEXT, Opcode.CONT)


class Socket(asyncio.BufferedProtocol):
    """A connection; created by `open_socket`.

    Args:
        uri: the server.
        headers: sent with the opening request.
        on_frame: called with the text of each message; with None for a binary message.
        on_room: called when more can be written after `is_full`.

    Attributes:
        closed: done when the connection has ended; its result is the reason.
        received_at: time on the event loop's clock at which data last arrived.
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
        self._write()
        if self._ws.close_expected() and self._transport is not None:
            self._loop.call_later(_CLOSE_TIMEOUT_S, self._transport.abort)

    def eof_received(self) -> None:
        """Process the end of the server's stream."""
        self._ws.receive_eof()
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        """Process the end of the connection. An error other than the network's is raised where `closed` is awaited."""
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
            self._on_frame(None)
        elif frame.opcode in _TEXT_PARTS:
            self._parts.append(bytes(frame.data))
            if frame.fin:
                whole, self._parts = b"".join(self._parts), []
                try:
                    text = whole.decode()
                except UnicodeDecodeError:
                    self._ws.fail(CloseCode.INVALID_DATA, "not UTF-8")
                else:
                    self._on_frame(text)

    def _write(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        for data in self._ws.data_to_send():
            if data:
                self._transport.write(data)
            elif self._transport.can_write_eof():
                self._transport.write_eof()


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
