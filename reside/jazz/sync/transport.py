"""The WebSocket under a node: one connection at a time, connected again with back-off for as long as the node lives."""

import asyncio
import logging
import random
import secrets
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Final

from websockets.exceptions import InvalidHandshake, InvalidURI

from reside.jazz.errors import JazzUnavailable
from reside.jazz.sync.backoff import back_off
from reside.jazz.sync.outbox import Outbox
from reside.jazz.sync.socket import Socket, open_socket

_log = logging.getLogger(__name__)
_SILENCE_S: Final = 10.0
"""The server pings every 1.5 s; after this long without a frame the connection is dead, as in the JavaScript client."""
_OPEN_TIMEOUT_S: Final = 10.0
_LATER_S: Final = 0.001


class Transport:
    """Keeps a connection to the sync server.

    Args:
        url: `ws://…` or `wss://…`.
        on_connect: called when a connection stands; what it sends goes out first.
        on_disconnect: called when it is gone.
        on_frame: called with each frame.
        on_queued: called when a message waits for the next `flush_due`.
        silence: seconds without a frame after which a connection is dead.

    Attributes:
        connected: set while there is a connection.
        outbox: what waits to be sent; its content is void when the connection ends.
    """

    def __init__(
        self,
        url: str,
        *,
        on_connect: Callable[[], None],
        on_disconnect: Callable[[], None],
        on_frame: Callable[[str], None],
        on_queued: Callable[[], None],
        silence: float = _SILENCE_S,
    ) -> None:
        self._url = url
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
        self.connected = asyncio.Event()

    def send(self, text: str) -> None:
        """Queue a message; it is dropped with the connection, because the next one starts from what the server has."""
        self.outbox.put(text)
        if self._socket is not None:
            self._is_due = True
            self._on_queued()

    def send_later(self, text: str) -> None:
        """Queue a message for which nobody waits: it goes out after the next one, or alone a moment later."""
        self.outbox.put(text, last=True)
        if self._socket is not None and self._later is None:
            self._later = asyncio.get_running_loop().call_later(_LATER_S, self._flush)

    def flush_due(self) -> None:
        """Send what waits, if somebody waits for it."""
        if self._is_due:
            self._flush()

    def _flush(self) -> None:
        """Send what waits, as far as the connection takes it."""
        self._is_due = False
        if self._later is not None:
            self._later.cancel()
            self._later = None
        while self._socket is not None and not self._socket.is_full and (frame := self.outbox.frame()) is not None:
            self._socket.send(frame)

    async def run(self) -> None:
        """Connect, again and again, until cancelled.

        Raises:
            JazzUnavailable: the URL is none; trying again can't help.
        """
        while True:
            socket = await self._open()
            if socket is not None:
                # A connection is good once the server has said something: one that accepts and hangs up is not.
                self._failures += 1
                try:
                    await self._serve(socket)
                finally:
                    await socket.close()
            await asyncio.sleep(back_off(self._failures, random.random()))  # noqa: S311 - spreads clients, no secret

    async def wait_connected(self, timeout: float) -> None:  # noqa: ASYNC109 - the error tells why it did not work
        """Wait for a connection.

        Raises:
            JazzUnavailable: there was none in time; tells the last failure.
        """
        try:
            async with asyncio.timeout(timeout):
                await self.connected.wait()
        except TimeoutError:
            raise JazzUnavailable(
                f"no connection to the sync server {_shown(self._url)} within {timeout:g} s ({self._last_error})"
            ) from None

    async def _open(self) -> Socket | None:
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                return await open_socket(
                    self._url,
                    headers={"X-Forwarded-For": _unique_address()},
                    on_frame=self._received,
                    on_room=self._flush,
                )
        except InvalidURI:
            raise JazzUnavailable(f"not the URL of a sync server: {_shown(self._url)}") from None
        except (OSError, TimeoutError, InvalidHandshake) as error:
            self._last_error = f"{type(error).__name__}: {error}"
            self._failures += 1
            return None

    async def _serve(self, socket: Socket) -> None:
        """Hold a connection until it ends or falls silent."""
        self.outbox.take_all()
        self._socket = socket
        self.connected.set()
        self._on_connect()
        try:
            while not socket.closed.done():
                left = socket.received_at + self._silence - asyncio.get_running_loop().time()
                if left <= 0:
                    break
                await asyncio.wait([socket.closed], timeout=left)
            silent = f"nothing came for {self._silence:g} s"
            self._last_error = socket.closed.result() if socket.closed.done() else silent
            _log.info("the connection to the sync server ended: %s", self._last_error)
        finally:
            self._socket = None
            self.connected.clear()
            self.outbox.take_all()
            self._on_disconnect()

    def _received(self, frame: str | None) -> None:
        if self._socket is None:
            return  # before the first question there is nothing to answer but a ping, after the end nothing counts
        self._failures = 0
        if frame is None:
            _log.warning("dropped a binary frame of the sync server: the protocol has text only")
        else:
            self._on_frame(frame)


def _shown(url: str) -> str:
    """Return a URL without what may be secret in it: name, password, query."""
    before, _, rest = url.partition("?")[0].rpartition("://")
    host = rest.rpartition("@")[2]
    return f"{before}://{host}" if before else host


def _unique_address() -> str:
    """Return an address of the unique local range (RFC 4193), drawn by chance.

    The stock server (jazz-run 0.15.10 and later) names a connection after this header and the millisecond, and drops
    the earlier of two connections of one name (docs/jazz-protocol.md, section 10).
    """
    return str(IPv6Address(b"\xfd" + secrets.token_bytes(15)))
