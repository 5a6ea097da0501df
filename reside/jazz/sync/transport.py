"""The WebSocket connection of a node: one at a time, reconnected with back-off until the node is closed."""

import asyncio
import logging
import random
import secrets
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final

from reside.jazz.errors import JazzUnavailable
from reside.jazz.sync.backoff import back_off
from reside.jazz.sync.outbox import Check, Outbox

if TYPE_CHECKING:
    from reside.jazz.sync.socket import Socket

_log = logging.getLogger(__name__)
_SILENCE_S: Final = 10.0
"""The server pings every 1.5 s. As in the JavaScript client, a connection without a frame for this long is closed."""
_OPEN_TIMEOUT_S: Final = 10.0
_LATER_S: Final = 0.001
_SEND_AT_CHARACTERS: Final = 8_000
"""With this much queued, it is sent before the end of the turn, so that the server need not wait for the rest."""


class Transport:
    """Keeps a connection to the sync server.

    Args:
        url: `ws://…` or `wss://…`.
        on_connect: called when a connection is open; what it sends is sent first.
        on_disconnect: called when the connection has ended.
        on_frame: called with each frame.
        on_queued: called when a message waits for the next `flush_due`.
        address: returns the URL for a new connection, with parameters that may be secret; None: `url` itself.
        silence: seconds without a frame after which a connection is closed.

    Attributes:
        outbox: the messages to send; dropped when the connection ends.
    """

    def __init__(
        self,
        url: str,
        *,
        on_connect: Callable[[], None],
        on_disconnect: Callable[[], None],
        on_frame: Callable[[str], None],
        on_queued: Callable[[], None],
        address: Callable[[], str] | None = None,
        silence: float = _SILENCE_S,
    ) -> None:
        self._url = url
        self._address = address
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        self._on_frame = on_frame
        self._on_queued = on_queued
        self._silence = silence
        self._failures = 0
        self._last_error = "no attempt was made"
        self._socket: Socket | None = None
        self._is_due = False
        self._later: asyncio.TimerHandle | None = None
        self.outbox = Outbox()

    @property
    def last_error(self) -> str:
        """Why there is no connection, or why the last one ended."""
        return self._last_error

    @property
    def server(self) -> str:
        """The URL of the server without parts that may be secret."""
        return _redacted(self._url)

    def send(self, text: str, may_send: Check | None = None) -> None:
        """Queue a message. It is dropped if the connection ends: the next one starts from the server's known state.

        Args:
            text: the message.
            may_send: see `Outbox.put`.
        """
        self.outbox.put(text, may_send)
        if self._socket is None:
            return
        if self.outbox.buffered >= _SEND_AT_CHARACTERS:
            self._flush()
        elif not self._is_due:
            self._is_due = True
            self._on_queued()

    def send_later(self, text: str) -> None:
        """Queue a message with low priority: it is sent after the next other message, or alone a moment later."""
        self.outbox.put(text, last=True)
        if self._socket is not None and self._later is None:
            self._later = asyncio.get_running_loop().call_later(_LATER_S, self._flush)

    def flush_due(self) -> None:
        """Send the queue if it contains a message from `send`."""
        if self._is_due:
            self._flush()

    def _flush(self) -> None:
        """Send the queue, as far as the connection accepts it."""
        self._is_due = False
        if self._later is not None:
            self._later.cancel()
            self._later = None
        while self._socket is not None and not self._socket.is_full and (frame := self.outbox.frame()) is not None:
            self._socket.send(frame)

    async def run(self) -> None:
        """Connect and reconnect until cancelled.

        Raises:
            JazzUnavailable: the URL is malformed; a retry can't help.
        """
        while True:
            socket = await self._open()
            if socket is not None:
                # Only a received frame resets the failures: a server may accept connections and close them at once.
                self._failures += 1
                try:
                    await self._serve(socket)
                finally:
                    await socket.close()
            await asyncio.sleep(back_off(self._failures, random.random()))  # noqa: S311 - jitter, not a secret

    async def _open(self) -> "Socket | None":
        from reside.jazz.sync.socket import open_socket  # noqa: PLC0415 - it imports websockets, a fifth of an import

        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                return await open_socket(
                    self._url if self._address is None else self._address(),
                    headers={"X-Forwarded-For": _unique_address()},
                    on_frame=self._received,
                    on_room=self._flush,
                )
        except (OSError, TimeoutError) as error:  # first: a certificate that can't be verified is a ValueError, too
            self._last_error = f"{type(error).__name__}: {error}"
            self._failures += 1
            return None
        except ValueError:
            raise JazzUnavailable(f"not the URL of a sync server: {self.server}") from None

    async def _serve(self, socket: "Socket") -> None:
        """Use a connection until it ends or is silent for too long."""
        self.outbox.take_all()
        self._socket = socket
        self._on_connect()
        try:
            while not socket.closed.done():
                remaining = socket.received_at + self._silence - asyncio.get_running_loop().time()
                if remaining <= 0:
                    break
                await asyncio.wait([socket.closed], timeout=remaining)
            silent = f"no frame for {self._silence:g} s"
            self._last_error = socket.closed.result() if socket.closed.done() else silent
            _log.info("the connection to the sync server ended: %s", self._last_error)
        finally:
            self._socket = None
            self.outbox.take_all()
            self._on_disconnect()

    def _received(self, frame: str | None) -> None:
        if self._socket is None:
            return  # the connection is not in use: nothing was requested yet, or it has ended
        self._failures = 0
        if frame is None:
            _log.warning("dropped a binary frame of the sync server: the protocol has only text frames")
        else:
            self._on_frame(frame)


def _redacted(url: str) -> str:
    """Return a URL without parts that may be secret: user name, password, query."""
    before, _, rest = url.partition("?")[0].rpartition("://")
    host = rest.rpartition("@")[2]
    return f"{before}://{host}" if before else host


def _unique_address() -> str:
    """Return a random address of the unique local range (RFC 4193).

    The stock server (jazz-run 0.15.10 and later) names a connection after this header and the millisecond, and drops
    the earlier of two connections with one name (docs/jazz-protocol.md, section 10).
    """
    return str(IPv6Address(b"\xfd" + secrets.token_bytes(15)))
