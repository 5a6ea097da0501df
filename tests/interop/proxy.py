"""A proxy in front of a sync server that counts messages, closes connections, delays, or stops answering."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from websockets.asyncio.connection import Connection

Direction: TypeAlias = Literal["up", "down"]
"""`up` is the direction from the client to the server."""


@dataclass
class Proxy:
    """One proxy.

    Attributes:
        url: address for clients.
        seen: the forwarded messages with their direction; pings are forwarded and not counted.
        cut_after: close the connection once, after so many messages of a direction; the last of them is forwarded.
        delay: seconds by which each message is delayed.
        deaf: forward neither messages nor pings, and keep the connection open.
        refuse: close every new connection immediately.
        connections: number of connections so far.
    """

    url: str = ""
    seen: list[tuple[Direction, dict[str, Any]]] = field(default_factory=list)
    cut_after: tuple[Direction, int] | None = None
    delay: float = 0.0
    deaf: bool = False
    refuse: bool = False
    connections: int = 0

    def count(self, direction: Direction) -> int:
        """Return the number of messages in a direction."""
        return sum(1 for way, _ in self.seen if way == direction)

    def transactions(self, direction: Direction) -> int:
        """Return the number of transactions in a direction."""
        messages = [message for way, message in self.seen if way == direction]
        return sum(len(batch["newTransactions"]) for message in messages for batch in message.get("new", {}).values())

    async def pump(self, direction: Direction, source: Connection, target: Connection) -> None:
        """Forward messages from one side until the connection is closed."""
        try:
            async for frame in source:
                for text in str(frame).split("\n"):
                    await asyncio.sleep(self.delay)
                    if self.deaf:
                        continue
                    await target.send(text)
                    message = json.loads(text)
                    if "action" not in message:
                        continue
                    self.seen.append((direction, message))
                    if self.cut_after == (direction, self.count(direction)):
                        self.cut_after = None
                        return
        except ConnectionClosed:
            return


@asynccontextmanager
async def proxy(server_url: str) -> AsyncIterator[Proxy]:
    """Yield a running proxy in front of a server."""
    made = Proxy()

    async def handle(client: ServerConnection) -> None:
        made.connections += 1
        if made.refuse or (made.cut_after is not None and made.cut_after[1] == 0):
            made.cut_after = None
            client.transport.abort()
            return
        async with connect(
            server_url,
            additional_headers={"X-Forwarded-For": _address(client)},
            max_size=None,
            compression=None,
            ping_interval=None,
            proxy=None,
        ) as server:
            pumps = [
                asyncio.create_task(made.pump("up", client, server)),
                asyncio.create_task(made.pump("down", server, client)),
            ]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            client.transport.abort()
            server.transport.abort()
            for pump in pumps:
                pump.cancel()
            await asyncio.wait(pumps)

    async with serve(handle, "127.0.0.1", 0, max_size=None, compression=None, ping_interval=None) as listening:
        made.url = f"ws://127.0.0.1:{next(iter(listening.sockets)).getsockname()[1]}"
        yield made


def _address(client: ServerConnection) -> str:
    return client.request.headers.get("X-Forwarded-For", "") if client.request is not None else ""
