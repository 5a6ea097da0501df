"""Nodes whose connection the test controls: without a socket, or with one that it opens and closes."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, TypeVar

from reside.jazz import Credentials, Group, Node, NotPermitted, WritePolicy, now_ms
from reside.jazz.ids import author_of
from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.keys import current_key_id, find_secret
from reside.jazz.wire.crypto import encrypt_text, transaction_material
from reside.jazz.wire.encoding import compact_json
from reside.jazz.wire.session import Transaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from reside.jazz.sync.connection import Connection

T = TypeVar("T")


class ForgingNode(Node):
    """A node that also writes what `reside.jazz` refuses."""

    def transact(
        self, co_id: str, changes: list[Any], *, private: bool, made_at: int, meta: dict[str, Any] | None = None
    ) -> None:
        """Write a transaction of any content and time without checks, as a hostile or a slow client may do."""
        core = self._host.store.core(co_id)
        session = self._host.writer.session_for(core)
        index, payload = core.count(session), compact_json(changes)
        text, key_id = None if meta is None else compact_json(meta), None
        if private:
            state = self._host.store.group_state(core.header.owner if core.header and core.header.owner else "")
            assert isinstance(state, GroupState), f"the owner of {co_id} is {state}"
            key_id = current_key_id(state, self.account_id)
            secret = find_secret(self._host.store, state.co_id, key_id or "")
            if secret is None:
                raise NotPermitted(co_id, group=state.co_id, role=None, act="write to", needs="a read key")
            material = transaction_material(co_id, session, index)
            payload = encrypt_text(payload, secret, material)
            text = None if text is None else encrypt_text(text, secret, material)
        self._host.writer._append(core, Transaction(session, index, made_at, payload, key_id, text, author_of(session)))

    def transact_text(self, co_id: str, payload: str, *, made_at: int) -> None:
        """Write an unencrypted transaction whose changes are any text."""
        core = self._host.store.core(co_id)
        session = self._host.writer.session_for(core)
        item = Transaction(session, core.count(session), made_at, payload, None, None, author_of(session))
        self._host.writer._append(core, item)


class DetachedNode(ForgingNode):
    """A node without a socket whose state is connected; the test takes its messages and gives it messages."""

    def __init__(
        self,
        credentials: Credentials | None = None,
        clock: Callable[[], int] = now_ms,
        policy: WritePolicy | None = None,
        urls: Sequence[str] = ("ws://nowhere",),
    ) -> None:
        self.credentials = credentials or Credentials.generate()
        super().__init__(urls, self.credentials, clock=clock, policy=policy)
        self._runtime._end = None
        self.connect()

    def connect(self) -> None:
        """Start a new connection."""
        for connection in self.connections:
            if connection.sync.connected:
                connection._disconnected()
            connection.transport.outbox.take_all()
            connection._connected()

    def cut(self) -> None:
        """End the connection, and discard the messages that were not taken."""
        for connection in self.connections:
            connection.transport.outbox.take_all()
            connection._disconnected()

    def give(self, *messages: Any) -> None:
        """Receive one frame of messages."""
        frame = "\n".join(item if isinstance(item, str) else json.dumps(item) for item in messages)
        self.connections[0]._received(frame)

    def take(self) -> list[dict[str, Any]]:
        """Return the messages that were sent since the last call."""
        self._host.writer.send()
        return self.take_queued()

    def take_queued(self) -> list[dict[str, Any]]:
        """Return the messages that the node queued by itself since the last call."""
        return [json.loads(text) for text in self.connections[0].transport.outbox.take_all()]

    @property
    def connections(self) -> list[Connection]:
        """The connections to the servers; `give` and `take` use the first."""
        return self._runtime._servers.connections


class SwitchedNode(ForgingNode):
    """A node whose connection to a real server the test opens and closes."""

    def __init__(self, url: str, credentials: Credentials, *, clock: Callable[[], int]) -> None:
        super().__init__(url, credentials, clock=clock)
        self._runtime._end = None
        self._connection: asyncio.Task[None] | None = None

    async def online(self) -> None:
        """Open the connection."""
        transport = self._runtime._servers.connections[0].transport
        socket = await transport._open()
        assert socket is not None, transport.last_error

        async def serve() -> None:
            try:
                await transport._serve(socket)
            finally:
                await socket.close()

        self._connection = asyncio.create_task(serve())
        await self._runtime._servers.wait_connected(5.0)

    async def offline(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.cancel()
            await asyncio.wait([connection])

    async def leave(self) -> None:
        """Close the node."""
        await self.offline()
        await self.close()


async def exchange(hub: DetachedNode, node: DetachedNode) -> None:
    """Pass messages between a node and the hub, which acts as the server, until both send none."""
    quiet = 0
    while quiet < 3:
        there, back = node.take(), hub.take()
        for message in there:
            hub.give(message)
        for message in back:
            node.give(message)
        quiet = 0 if there or back else quiet + 1
        await asyncio.sleep(0)


async def exchange_during(hub: DetachedNode, node: DetachedNode, work: Awaitable[T]) -> T:
    """Return the result of `work`, and pass messages between the node and the hub until it is done."""
    task = asyncio.ensure_future(work)
    while not task.done():
        await exchange(hub, node)
    return await task


def detached_group(clock: Callable[[], int] = now_ms) -> Group:
    """Return a group of an unconnected node, whose account no server knows."""
    node = DetachedNode(clock=clock)
    core = node._host.writer.create(node._runtime.account_header)
    node._host.object_of(core, Group)._initialise()
    return node.create_group()


async def registered(hub: DetachedNode, name: str = "someone", clock: Callable[[], int] = now_ms) -> DetachedNode:
    """Return a node with a new account that is registered at the hub."""
    node = DetachedNode(clock=clock)
    await exchange_during(hub, node, node.register(name))
    return node
