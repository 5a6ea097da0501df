"""The WebSocket under a node: one connection at a time, connected again with back-off for as long as the node lives."""

import asyncio
import logging
import random
import secrets
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidURI, WebSocketException

from reside.jazz.errors import JazzUnavailable

from .backoff import back_off
from .outbox import Outbox

_log = logging.getLogger(__name__)
_SILENCE_S: Final = 10.0
"""The server pings every 1.5 s; after this long without a frame the connection is dead, as in the JavaScript client."""
_OPEN_TIMEOUT_S: Final = 10.0
_CLOSE_TIMEOUT_S: Final = 1.0
"""Nothing is lost by a close without the other side's consent."""


class Transport:
    """Keeps a connection to the sync server.

    Args:
        url: `ws://…` or `wss://…`.
        on_connect: Called when a connection stands; what it sends goes out first.
        on_disconnect: Called when it is gone.
        on_frame: Called with each frame.
        silence: Seconds without a frame after which a connection is dead.

    Attributes:
        connected: Set while there is a connection.
        outbox: What waits to be sent; its content is void when the connection ends.
    """

    def __init__(
        self,
        url: str,
        *,
        on_connect: Callable[[], None],
        on_disconnect: Callable[[], None],
        on_frame: Callable[[str], None],
        silence: float = _SILENCE_S,
    ) -> None:
        self._url = url
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        self._on_frame = on_frame
        self._silence = silence
        self._failures = 0
        self._last_error = "no attempt was made"
        self.outbox = Outbox()
        self.connected = asyncio.Event()

    def send(self, text: str) -> None:
        """Queues a message; it is dropped with the connection, because the next one starts from what the server has."""
        self.outbox.put(text)

    async def run(self) -> None:
        """Connects, again and again, until cancelled.

        Raises:
            JazzUnavailable: The URL is none; trying again can't help.
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
        """Waits for a connection.

        Raises:
            JazzUnavailable: There was none in time; tells the last failure.
        """
        try:
            async with asyncio.timeout(timeout):
                await self.connected.wait()
        except TimeoutError:
            raise JazzUnavailable(
                f"no connection to the sync server {self._url} within {timeout:g} s ({self._last_error})"
            ) from None

    async def _open(self) -> ClientConnection | None:
        try:
            async with asyncio.timeout(_OPEN_TIMEOUT_S):
                return await connect(
                    self._url,
                    additional_headers={"X-Forwarded-For": _unique_address()},
                    max_size=None,
                    compression=None,
                    ping_interval=None,
                    close_timeout=_CLOSE_TIMEOUT_S,
                    proxy=None,
                )
        except InvalidURI:
            raise JazzUnavailable(f"not the URL of a sync server: {self._url}") from None
        except (OSError, TimeoutError, InvalidHandshake) as error:
            self._last_error = f"{type(error).__name__}: {error}"
            self._failures += 1
            return None

    async def _serve(self, socket: ClientConnection) -> None:
        self.outbox.take_all()
        self.connected.set()
        self._on_connect()
        writer = asyncio.create_task(self._write(socket), name="jazz writer")
        try:
            while True:
                async with asyncio.timeout(self._silence):
                    frame = await socket.recv()
                self._failures = 0
                if isinstance(frame, str):
                    self._on_frame(frame)
                else:
                    _log.warning("dropped a binary frame of the sync server: the protocol has text only")
        except (WebSocketException, TimeoutError, OSError) as error:
            self._last_error = f"{type(error).__name__}: {error}"
            _log.info("the connection to the sync server ended: %s", self._last_error)
        finally:
            self.connected.clear()
            writer.cancel()
            self.outbox.take_all()
            self._on_disconnect()
            await asyncio.wait([writer])
            _report(writer)

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            await socket.send(await self.outbox.frame())


def _unique_address() -> str:
    """An address of the unique local range (RFC 4193), drawn by chance.

    The stock server (jazz-run 0.15.10 and later) names a connection after this header and the millisecond, and drops
    the earlier of two connections of one name (jazz-protocol.md §11).
    """
    return str(IPv6Address(b"\xfd" + secrets.token_bytes(15)))


def _report(writer: asyncio.Task[None]) -> None:
    """A writer ends because it was cancelled or because the connection broke, which the reader has told already."""
    if not writer.cancelled():
        error = writer.exception()
        if error is not None and not isinstance(error, WebSocketException | OSError):
            raise error
