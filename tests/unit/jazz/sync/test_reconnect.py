"""A reconnect transfers only the difference, in both directions, whatever changed meanwhile."""

import asyncio
import json
from typing import Any

import pytest
from support.jazz_controlled_nodes import DetachedNode, registered
from support.jazz_nodes import content

from reside.jazz import CoMap
from reside.jazz.memory.store import Store
from reside.jazz.sync import Exchange
from reside.jazz.sync.protocol import Sync

pytestmark = pytest.mark.anyio


class _Server:
    """A server of one store, with a record of its own for each connection."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def accept(self, node: DetachedNode) -> "_Line":
        """Return a new connection of a node."""
        node.cut()
        node.connect()
        return _Line(self.store, node)


class _Line:
    """One connection between a server and a node; the test passes the messages on."""

    def __init__(self, store: Store, node: DetachedNode) -> None:
        self.node = node
        self.back: list[str] = []
        self.there: list[dict[str, Any]] = []
        self._sync = _side(store, self.back)
        self._sync.connected = True

    async def carry(self, change: Any = None) -> tuple[int, int]:
        """Pass messages on until both are silent; return the numbers of transactions in both directions."""
        moved = [0, 0]
        for _ in range(60):
            out = self.node.take()
            self.there += out
            moved[0] += _transactions(out)
            for message in out:
                self._sync.receive(json.dumps(message))
            answers, self.back[:] = [json.loads(text) for text in self.back], []
            moved[1] += _transactions(answers)
            for message in answers:
                self.node.give(message if change is None else change(message))
            await asyncio.sleep(0)
        return moved[0], moved[1]


class _Pair:
    """Two writers of one map, both disconnected."""

    def __init__(self, server: _Server, one: DetachedNode, two: DetachedNode, mine: CoMap, theirs: CoMap) -> None:
        self.server, self.one, self.two, self.mine, self.theirs = server, one, two, mine, theirs

    def copy(self) -> _Server:
        """Return a server with the present content of this one, as restored from a backup."""
        return _Server(_copied(self.server.store))


def _copied(store: Store) -> Store:
    copy = DetachedNode()._host.store
    sent: list[str] = []
    line, source = _side(copy, []), _side(store, sent)
    for co_id in sorted(store.cores, key=lambda co_id: store.cores[co_id].header.priority):  # type: ignore[union-attr] # all have headers
        source.receive(json.dumps({"action": "load", "id": co_id, "header": False, "sessions": {}}))
    for text in sent:
        line.receive(text)
    return copy


def _side(store: Store, sent: list[str]) -> Sync:
    """Return one side of a connection, which appends its messages to `sent`."""
    exchange = Exchange(store, on_acknowledged=lambda _: None, on_too_late=lambda _: None)
    return exchange.add(lambda text, _=None: sent.append(text), sent.append, on_full_load=lambda _: None)


@pytest.fixture
async def pair() -> _Pair:
    """Return two writers that hold the map and have written to it; nothing is connected."""
    hub = DetachedNode()
    one, two = await registered(hub, "one"), await registered(hub, "two")
    server = _Server(hub._host.store)
    group = one.create_group()
    await group.add_member("everyone", "writer")
    mine = group.create_map({"one": 0})
    await server.accept(one).carry()
    line = server.accept(two)
    loading = asyncio.create_task(two.load_map(mine.id))
    while not loading.done():
        await line.carry()
    theirs = await loading
    theirs.set("two", 0)
    await line.carry()
    await server.accept(one).carry()
    return _Pair(server, one, two, mine, theirs)


def _transactions(messages: list[dict[str, Any]]) -> int:
    return sum(len(batch["newTransactions"]) for message in messages for batch in message.get("new", {}).values())


async def test_a_reconnect_without_changes_transfers_nothing(pair: _Pair) -> None:
    assert await pair.server.accept(pair.one).carry() == (0, 0)


async def test_a_reconnect_transfers_only_the_changes_of_both_sides(pair: _Pair) -> None:
    line = pair.server.accept(pair.two)
    pair.one.cut()
    pair.mine.set("one", 1)
    pair.mine.set("one", 2)
    await line.carry()
    pair.theirs.set("two", 1)
    await line.carry()
    assert await pair.server.accept(pair.one).carry() == (2, 1)
    assert content(pair.mine) == {"one": 2, "two": 1}
    await pair.one.flush()


async def test_a_server_that_lost_a_part_gets_it_back_even_if_it_has_changes(pair: _Pair) -> None:
    """Content in a response shows that the server has more; only the next response shows that it also has less."""
    backup = pair.copy()
    pair.mine.set("one", 1)
    assert await pair.server.accept(pair.one).carry() == (1, 0)
    pair.theirs.set("two", 1)
    assert await backup.accept(pair.two).carry() == (1, 0)
    assert await backup.accept(pair.one).carry() == (1, 1)
    assert backup.store.core(pair.mine.id).counts() == pair.one._host.store.core(pair.mine.id).counts()


async def test_own_writes_are_sent_although_a_foreign_batch_is_never_accepted(pair: _Pair) -> None:
    """A session whose signature does not verify is reported as known, so that the server does not send it again."""

    def forge(message: dict[str, Any]) -> dict[str, Any]:
        for batch in message.get("new", {}).values():
            batch["lastSignature"] = "signature_z" + "1" * 64
        return message

    pair.mine.set("one", 1)
    pair.theirs.set("two", 1)
    await pair.server.accept(pair.two).carry()
    line = pair.server.accept(pair.one)
    assert (await line.carry(forge))[0] == 1
    asked = [message for message in line.there if message["action"] == "load" and message["id"] == pair.mine.id]
    assert len(asked) == 2
    await pair.one.flush()


async def test_an_interrupted_stream_is_not_treated_as_complete(pair: _Pair) -> None:
    """After a reconnect, a load still waits for what the first part announced."""
    last = pair.two._host.writer.session

    def first_half(message: dict[str, Any]) -> dict[str, Any]:
        if last in message.get("new", {}) and message["id"] == pair.mine.id:
            message["expectContentUntil"] = {last: len(message["new"].pop(last)["newTransactions"])}
        return message

    reader = DetachedNode()
    loading = asyncio.create_task(reader.load_map(pair.mine.id))
    await pair.server.accept(reader).carry(first_half)
    assert not loading.done()
    line = pair.server.accept(reader)
    await asyncio.sleep(0)
    assert not loading.done()
    await line.carry()
    assert content(await loading) == {"one": 0, "two": 0}


async def test_a_released_value_that_a_server_has_lost_in_part_is_written_without_a_conflict(pair: _Pair) -> None:
    """The node has evicted what the restored server lacks, but another reader has it, and gives it back later."""
    backup, co_id = pair.copy(), pair.mine.id
    pair.mine.release()
    pair.mine.set("one", 1)
    await pair.server.accept(pair.one).carry()
    await pair.server.accept(pair.two).carry()
    assert pair.theirs["one"] == 1
    del pair.mine
    pair.one._host.objects.release()
    pair.one._runtime._evict()
    assert co_id not in pair.one._host.store.cores
    line = backup.accept(pair.one)
    loading = asyncio.create_task(pair.one.load_map(co_id))
    while not loading.done():
        await line.carry()
    again = await loading
    again.release()
    assert again["one"] == 0
    again.set("one", 2)
    await line.carry()
    await backup.accept(pair.two).carry()
    await backup.accept(pair.one).carry()
    assert (pair.theirs["one"], again["one"]) == (2, 2)
    assert pair.one.statistics.rejected == pair.two.statistics.rejected == 0
    assert pair.one._host.store.core(co_id).counts() == pair.two._host.store.core(co_id).counts()
