"""One WebSocket as a protocol of the event loop.

Frames are handed over in the turn in which they arrive, and written in the turn in which they are sent: no task stands
between the network and the node, unlike in `websockets.asyncio`. The protocol itself is that of
`websockets`, which does no input and output here.
"""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidHandshake
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.uri import WebSocketURI, parse_uri

_CLOSE_TIMEOUT_S: Final = 1.0
"""Nothing is lost by a close without the other side's consent."""
_READ_BYTES: Final = 256 * 1024
"""Read at once at most, into a buffer that is made once: asyncio's streams make one of this size for every read."""
_TEXT_PARTS: Final = (Opcode.TEXT, Opcode.CONT)


class Socket(asyncio.BufferedProtocol):
    """A connection; `open_socket` makes one.

    Args:
        uri: the server.
        headers: sent with the opening request.
        on_frame: called with the text of each message; with None for a binary one.
        on_room: called when more can be written after `is_full`.

    Attributes:
        closed: done when the connection has ended; its result tells why.
        received_at: the loop's time when something arrived last.
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
        self._ws = ClientProtocol(uri, max_size=None)
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes] = []
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self.opened: asyncio.Future[None] = self._loop.create_future()
        self.closed: asyncio.Future[str] = self._loop.create_future()
        self.received_at = self._loop.time()
        self.is_full = False

    def send(self, text: str) -> None:
        """Write a message; nothing happens if the connection has ended."""
        if self._ws.state is OPEN:
            self._ws.send_text(text.encode())
            self._write()

    async def close(self) -> None:
        """End the connection, in order if the other side agrees in time."""
        if self._ws.state is OPEN:
            self._ws.send_close(CloseCode.NORMAL_CLOSURE)
            self._write()
            await asyncio.wait([self.closed], timeout=_CLOSE_TIMEOUT_S)
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the opening request."""
        self._transport = cast("asyncio.Transport", transport)  # a stream; uvloop's is no subclass of it
        request = self._ws.connect()
        request.headers.update(self._headers)
        self._ws.send_request(request)
        self._write()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the protocol's signature
        """Return where the next bytes go."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Take what arrived: an answer to the request, then frames."""
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
        """Return the other side sends no more."""
        self._ws.receive_eof()
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        """Return the connection is gone. An error that is not the network's is raised where `closed` is awaited."""
        self._ws.receive_eof()
        if not self.opened.done():
            self.opened.set_exception(self._ws.handshake_exc or exc or InvalidHandshake("the connection ended"))
        if exc is not None and not isinstance(exc, OSError):
            self.closed.set_exception(exc)
        else:
            self.closed.set_result(f"{type(exc).__name__}: {exc}" if exc else f"closed: {self._ws.close_exc}")

    def pause_writing(self) -> None:
        """Too much is buffered."""
        self.is_full = True

    def resume_writing(self) -> None:
        """Return what was buffered is written."""
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
        InvalidURI: the URL is none.
        InvalidHandshake: the server is there, but no WebSocket server.
        OSError: the server is not there.
    """
    uri = parse_uri(url)
    tls = ssl.create_default_context() if uri.secure else None
    loop = asyncio.get_running_loop()
    _, socket = await loop.create_connection(lambda: Socket(uri, **arguments), uri.host, uri.port, ssl=tls)
    try:
        await socket.opened
    except BaseException:
        await socket.close()
        raise
    return socket
