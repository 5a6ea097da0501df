"""Nodes without a socket: what one would send is caught, and given to another or to the test."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from reside.jazz import Credentials, Node


class Loose(Node):
    """A node that believes itself connected; its frames are taken and given by hand."""

    def __init__(self, credentials: Credentials | None = None) -> None:
        super().__init__("ws://nowhere", credentials or Credentials.generate())
        self._end = None
        self.connect()

    def connect(self) -> None:
        """A new connection begins."""
        self._transport._outgoing.clear()
        self._transport.connected.set()
        self._sync.connect()

    def cut(self) -> None:
        """The connection ends, with what was not taken."""
        self._transport._outgoing.clear()
        self._transport.connected.clear()
        self._disconnected()

    def give(self, *messages: Any) -> None:
        """Receives one frame of messages."""
        self._received("\n".join(item if isinstance(item, str) else json.dumps(item) for item in messages))

    def take(self) -> list[dict[str, Any]]:
        """What was sent since the last time."""
        self.writer.send()
        sent = [json.loads(text) for text in self._transport._outgoing]
        self._transport._outgoing.clear()
        return sent


async def connected_to(hub: Loose, node: Loose) -> None:
    """Carries messages between a node and one that plays the server, until both are silent."""
    quiet = 0
    while quiet < 3:
        there, back = node.take(), hub.take()
        for message in there:
            hub.give(message)
        for message in back:
            node.give(message)
        quiet = 0 if there or back else quiet + 1
        await asyncio.sleep(0)


async def registered(hub: Loose, name: str = "someone") -> Loose:
    """A node whose account the hub has."""
    node = Loose()
    registering = asyncio.create_task(node.register(name))
    while not registering.done():
        await connected_to(hub, node)
    await registering
    return node
