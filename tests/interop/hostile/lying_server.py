"""A sync server that the test controls: it has the values of a node, and sends any message over a real socket."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered
from support.jazz_nodes import until
from websockets.asyncio.server import serve

from reside.jazz import CoMap, Credentials, Group, Node

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from typing import TypeVar

    from websockets.asyncio.server import ServerConnection

    T = TypeVar("T")

_WITHIN_S = 60.0


class LyingServer:
    """The server responds to loads with its node's values, and acknowledges and drops content.

    Attributes:
        hub: the node that has the values.
        url: address of the server.
        connections: the number of connections so far.
        heard: all messages that were received.
        answers: value id → what replaces the true response to a load.
    """

    def __init__(self, hub: DetachedNode) -> None:
        self.hub = hub
        self.url = ""
        self.connections = 0
        self.heard: list[dict[str, Any]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self._socket: ServerConnection | None = None
        self._news = asyncio.Event()

    def whole(self, co_id: str) -> dict[str, Any]:
        """Return the message with a whole value."""
        self.hub.take()
        self.hub.give({"action": "load", "id": co_id, "header": False, "sessions": {}})
        (message,) = (item for item in self.hub.take() if item["id"] == co_id)
        return message

    async def say(self, *frames: str | bytes | dict[str, Any]) -> None:
        """Send frames to the connected client."""
        assert self._socket is not None
        for frame in frames:
            await self._socket.send(json.dumps(frame) if isinstance(frame, dict) else frame)

    async def hear(self, **fields: Any) -> dict[str, Any]:
        """Wait for a message with these members, among all that were received."""
        async with asyncio.timeout(_WITHIN_S):
            while True:
                for message in self.heard:
                    if fields.items() <= message.items():
                        return message
                self._news.clear()
                await self._news.wait()

    async def serve(self, socket: ServerConnection) -> None:
        """Handle a connection."""
        self.connections += 1
        self._socket = socket
        async for frame in socket:
            for line in str(frame).split("\n"):
                message = json.loads(line)
                self.heard.append(message)
                self._news.set()
                await self._answer(message)

    async def _answer(self, message: dict[str, Any]) -> None:
        if message["action"] == "load":
            await self.say(self.answers.get(message["id"]) or self.whole(message["id"]))
        elif message["action"] == "content":
            counts = {name: batch["after"] + len(batch["newTransactions"]) for name, batch in message["new"].items()}
            await self.say({"action": "known", "id": message["id"], "header": True, "sessions": counts})


@dataclass
class Setup:
    """A victim on a lying server, with values that an honest owner and a hostile member wrote.

    Attributes:
        server: the server.
        victim: a real node.
        owner: the admin of the group; its writes reach the server's node by `carry`.
        mallory: a writer of the group.
        value: a map of the group, as the owner has it.
        mine: the same map as the victim has it.
        other: another map of the group, as the owner has it.
        my_other: the same map as the victim has it.
    """

    server: LyingServer
    victim: Node
    owner: DetachedNode
    mallory: DetachedNode
    value: CoMap
    mine: CoMap
    other: CoMap
    my_other: CoMap
    _updates: int = field(default=0)

    @property
    def group(self) -> Group:
        """The group as the owner has it."""
        return self.value.group

    async def carry(self, node: DetachedNode) -> None:
        """Exchange messages between a node and the server's node; the victim gets none of them."""
        await exchange(self.server.hub, node)

    async def run(self, node: DetachedNode, doing: Awaitable[T]) -> T:
        """Return the result of an operation of the node that needs the server."""
        return await exchange_during(self.server.hub, node, doing)

    async def is_unharmed(self) -> None:
        """Check that the victim is on its first connection, and an honest write to another value reaches it.

        Raises:
            AssertionError: it is not, or the write does not arrive.
        """
        self._updates += 1
        self.other.set("update", self._updates)
        await self.carry(self.owner)
        await self.server.say(self.server.whole(self.other.id))
        await until(self.my_other, {"update": self._updates})
        assert self.victim.connected
        assert self.server.connections == 1


@asynccontextmanager
async def attack(role: Any = "writer") -> AsyncIterator[Setup]:
    """Yield a setup in which mallory has a role."""
    hub = DetachedNode()
    server = LyingServer(hub)
    owner, mallory = await registered(hub, "owner"), await registered(hub, "mallory")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    await exchange_during(hub, owner, group.add_member(mallory.account_id, role))
    value, other = group.create_map({"x": 1}), group.create_map({"update": 0})
    await exchange(hub, owner)
    await exchange_during(hub, mallory, mallory.load_map(value.id))
    async with serve(server.serve, "127.0.0.1", 0, max_size=None, compression=None) as listening:
        server.url = f"ws://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        async with Node(server.url, Credentials.generate()) as victim:
            mine, my_other = await victim.load_map(value.id), await victim.load_map(other.id)
            yield Setup(server, victim, owner, mallory, value, mine, other, my_other)
