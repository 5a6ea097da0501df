"""The WebSocket under a node: one connection at a time, connected again with back-off for as long as the node lives."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidURI, WebSocketException

from reside.jazz.errors import JazzUnavailable

_log = logging.getLogger(__name__)
_MAX_FRAME_CHARACTERS: Final = 25_000
_SILENCE_S: Final = 10.0
"""The server pings every 1.5 s; after this long without a frame the connection is dead, as in the JavaScript client."""
_BACK_OFF_STEP_S: Final = 0.5
_BACK_OFF_MAX_S: Final = 10.0
_OPEN_TIMEOUT_S: Final = 10.0


class Transport:
    """Keeps a connection to the sync server.

    Args:
        url: `ws://…` or `wss://…`.
        on_connect: Called when a connection stands; what it sends goes out first.
        on_disconnect: Called when it is gone.
        on_frame: Called with each frame.
    """

    def __init__(
        self,
        url: str,
        *,
        on_connect: Callable[[], None],
        on_disconnect: Callable[[], None],
        on_frame: Callable[[str], None],
    ) -> None:
        self._url = url
        self._on_connect = on_connect
        self._on_disconnect = on_disconnect
        self._on_frame = on_frame
        self._outgoing: deque[str] = deque()
        self._wanted = asyncio.Event()
        self._last_error = "no attempt was made"
        self.connected = asyncio.Event()

    def send(self, text: str) -> None:
        """Queues a message; it is dropped with the connection, because the next one starts from what the server has."""
        self._outgoing.append(text)
        self._wanted.set()

    async def run(self) -> None:
        """Connects, again and again, until cancelled.

        Raises:
            JazzUnavailable: The URL is none; trying again can't help.
        """
        failures = 0
        while True:
            try:
                async with asyncio.timeout(_OPEN_TIMEOUT_S):
                    socket = await connect(self._url, max_size=None, compression=None, ping_interval=None, proxy=None)
            except InvalidURI:
                raise JazzUnavailable(f"not the URL of a sync server: {self._url}") from None
            except (OSError, TimeoutError, InvalidHandshake) as error:
                self._last_error = f"{type(error).__name__}: {error}"
                failures += 1
                await asyncio.sleep(min(failures * _BACK_OFF_STEP_S, _BACK_OFF_MAX_S))
                continue
            failures = 0
            try:
                await self._serve(socket)
            finally:
                await socket.close()
            await asyncio.sleep(_BACK_OFF_STEP_S)

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

    async def _serve(self, socket: ClientConnection) -> None:
        self._outgoing.clear()
        self.connected.set()
        self._on_connect()
        writer = asyncio.create_task(self._write(socket))
        try:
            while True:
                async with asyncio.timeout(_SILENCE_S):
                    frame = await socket.recv()
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
            self._on_disconnect()
            await asyncio.wait([writer])
            _report(writer)

    async def _write(self, socket: ClientConnection) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            while self._outgoing:
                frame = [self._outgoing.popleft()]
                size = len(frame[0])
                while self._outgoing and size + len(self._outgoing[0]) <= _MAX_FRAME_CHARACTERS:
                    frame.append(self._outgoing.popleft())
                    size += len(frame[-1])
                await socket.send("\n".join(frame))


def _report(writer: asyncio.Task[None]) -> None:
    """A writer ends because it was cancelled or because the connection broke, which the reader has told already."""
    if not writer.cancelled():
        error = writer.exception()
        if error is not None and not isinstance(error, WebSocketException | OSError):
            raise error
