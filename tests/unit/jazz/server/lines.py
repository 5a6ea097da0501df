"""Connections to a hub that the test drives: no sockets, and a clock that the test moves."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeVar, cast

from interop.strangers.stranger import Stranger
from support.jazz_controlled_nodes import DetachedNode

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from reside.jazz.server.hub import Hub
    from reside.jazz.server.peer import Peer

T = TypeVar("T")


class Line:
    """A connection to a hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.peer: Peer = hub.connect(lambda: None)

    def give(self, *messages: Any) -> None:
        """Send messages to the server; a text is sent as it is."""
        for item in messages:
            self._hub.receive(self.peer, item if isinstance(item, str) else json.dumps(item))

    def take(self) -> list[dict[str, Any]]:
        """Return what the server sends."""
        return [json.loads(text) for text in self._hub.outgoing(self.peer)]

    def load(self, co_id: str) -> list[dict[str, Any]]:
        """Request a value as a client that has nothing of it, and return the answer."""
        self.give({"action": "load", "id": co_id, "header": False, "sessions": {}})
        return self.take()

    def sessions(self, co_id: str) -> set[str]:
        """Return the sessions of a value that the server has, as another client sees them."""
        other = Line(self._hub)
        found = {session for item in other.load(co_id) if item["id"] == co_id for session in item.get("new", ())}
        self._hub.disconnect(other.peer)
        return found

    def end(self) -> None:
        """End the connection."""
        self._hub.disconnect(self.peer)


class Clock:
    """A clock in seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


class Attached:
    """Nodes whose connections are lines to a hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._pairs: list[tuple[DetachedNode, Line]] = []

    async def node(self, name: str = "someone") -> DetachedNode:
        """Return a node with a new account."""
        made = DetachedNode()
        self._pairs.append((made, Line(self._hub)))
        await self.during(made.register(name))
        return made

    async def settle(self) -> None:
        """Pass messages on until there are none."""
        quiet = 0
        while quiet < 3:
            passed = False
            for node, line in self._pairs:
                there = node.take()
                line.give(*there)
                back = line.take()
                node.give(*back)
                passed = passed or bool(there or back)
            quiet = 0 if passed else quiet + 1
            await asyncio.sleep(0)

    async def during(self, work: Awaitable[T]) -> T:
        """Return the result of `work`, and pass messages on until it is done."""
        task = asyncio.ensure_future(work)
        while not task.done():
            await self.settle()
        await self.settle()
        return await task

    def line_of(self, node: DetachedNode) -> Line:
        """Return the connection of a node."""
        return next(line for other, line in self._pairs if other is node)


def stranger() -> Stranger:
    """Return a key pair that signs anything; it has no connection."""
    return Stranger(cast("Any", None), "")
