"""One WebSocket connection of the server: reads frames, sends what is due, and pings."""

import asyncio
import json
import logging
import time
from typing import Final

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from reside.jazz.errors import StoreFailed
from reside.jazz.server.hub import Hub
from reside.jazz.server.values import Values

_log = logging.getLogger(__name__)
_PING_S: Final = 1.5
"""As the official server. Clients close a connection that is silent for 10 s."""


class Connection:
    """A connection.

    Args:
        socket: the WebSocket.
        hub: the protocol.
        values: saved after each message, before it is acknowledged.
    """

    def __init__(self, socket: ServerConnection, hub: Hub, values: Values) -> None:
        self._socket = socket
        self._hub = hub
        self._values = values
        self._due = asyncio.Event()
        self._room = asyncio.Event()
        self._peer = hub.connect(self._due.set)

    async def run(self) -> None:
        """Serve the connection until it ends."""
        try:
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(self._write())
                await self._read()
                writing.cancel()
        except* ConnectionClosed:
            pass
        except* StoreFailed as failed:
            _log.error("closed a connection: %s", failed.exceptions[0])
            await self._socket.close(CloseCode.INTERNAL_ERROR)
        finally:
            self._hub.disconnect(self._peer)

    async def _read(self) -> None:
        async for frame in self._socket:
            if isinstance(frame, bytes):
                _log.warning("dropped a binary frame: the protocol has only text frames")
                continue
            for line in frame.split("\n"):
                if line and self._peer.refusal is None:
                    self._hub.receive(self._peer, line)
                    self._values.save()
                    await self._until_room()

    async def _until_room(self) -> None:
        """Give the other connections a turn, and wait while too much is to be sent to this one."""
        await asyncio.sleep(0)
        while self._peer.is_full:
            self._room.clear()
            await self._room.wait()

    async def _write(self) -> None:
        """Send what is due; if nothing is due for a while, send a ping."""
        while self._peer.refusal is None:
            self._due.clear()
            for text in self._hub.outgoing(self._peer):
                await self._socket.send(text)
                if not self._peer.is_full:
                    self._room.set()
                if self._peer.refusal is not None:
                    break
            await self._wait()
        _log.warning("closed a connection: %s", self._peer.refusal)
        await self._socket.close(CloseCode.POLICY_VIOLATION, self._peer.refusal)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(_PING_S):
                await self._due.wait()
        except TimeoutError:
            self._hub.expire(self._peer)
            await self._socket.send(json.dumps({"type": "ping", "time": time.time_ns() // 1_000_000, "dc": "unknown"}))
