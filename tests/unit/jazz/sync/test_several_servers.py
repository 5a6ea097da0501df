"""A node with two servers, message by message: what is acknowledged, what is absent, and that messages end."""

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from support.jazz_controlled_nodes import DetachedNode

from reside.jazz import Credentials, InvalidArgument, Node, ValueNotFound
from reside.jazz.sync import Exchange

if TYPE_CHECKING:
    from reside.jazz.memory.store import Store

pytestmark = pytest.mark.anyio

ABSENT = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"


class _Server:
    """A server that answers one node, while the test carries the messages."""

    def __init__(self, node: DetachedNode, place: int) -> None:
        self.store: Store = DetachedNode()._host.store
        self.heard: list[Any] = []
        self._connection = node.connections[place]
        self._answers: list[str] = []
        self._sync = Exchange(self.store, on_acknowledged=lambda _: None, on_too_late=lambda _: None).add(
            lambda text, _=None: self._answers.append(text), self._answers.append, on_full_load=lambda _: None
        )
        self._sync.connected = True

    def carry(self) -> bool:
        """Exchange what is queued in both directions; return whether there was anything."""
        there = self._connection.transport.outbox.take_all()
        self.heard += [json.loads(text) for text in there]
        for text in there:
            self._sync.receive(text)
        back, self._answers[:] = list(self._answers), []
        for text in back:
            self._connection._received(text)
        return bool(there or back)

    def holds(self, co_id: str) -> int:
        """Return how many transactions of a value the server has."""
        return len(self.store.cores[co_id].transactions) if co_id in self.store.cores else 0  # type: ignore[index]


@pytest.fixture
async def node() -> DetachedNode:
    """Return a node that is connected to two servers."""
    return DetachedNode(urls=("ws://one", "ws://two"))


@pytest.fixture
async def servers(node: DetachedNode) -> tuple[_Server, _Server]:
    """Return the node's servers, on which its account is registered."""
    servers = _Server(node, 0), _Server(node, 1)
    registering = asyncio.create_task(node.register("both"))
    while not registering.done():
        await _settle(node, *servers)
    await registering
    await _settle(node, *servers)
    return servers


async def _settle(node: DetachedNode, *servers: _Server) -> None:
    """Carry messages until all are silent, which must happen soon."""
    for _ in range(30):
        node._host.writer.send()
        carried = [server.carry() for server in servers]
        await asyncio.sleep(0)
        if not any(carried):
            return
    raise AssertionError("the messages do not end")


async def test_a_write_is_acknowledged_once_both_servers_have_it(
    node: DetachedNode, servers: tuple[_Server, _Server]
) -> None:
    one, two = servers
    value = node.create_group().create_map({"x": 1})
    uploading = asyncio.create_task(value.uploaded(timeout=60))
    await _settle(node, one)
    assert one.holds(value.id) == 1
    assert not uploading.done()
    await _settle(node, two)
    await uploading
    assert node.statistics.unacknowledged == 0


async def test_content_of_one_server_is_passed_to_the_other_once(
    node: DetachedNode, servers: tuple[_Server, _Server]
) -> None:
    one, two = servers
    value = node.create_group().create_map({"x": 1})
    await _settle(node, one)
    other = DetachedNode(node.credentials)
    elsewhere = _Server(other, 0)
    elsewhere.store.cores.update(one.store.cores)
    loading = asyncio.create_task(other.login())
    while not loading.done():
        await _settle(other, elsewhere)
    reading = asyncio.create_task(other.load_map(value.id))
    while not reading.done():
        await _settle(other, elsewhere)
    (await reading).set("x", 2)
    await _settle(other, elsewhere)
    await _settle(node, one, two)
    node.cut()
    node.connect()  # then the first server sends what the other node wrote
    one.heard.clear()
    two.heard.clear()
    await _settle(node, one, two)
    assert value.get("x") == 2
    assert two.holds(value.id) == 2
    passed = [message for message in two.heard if message["action"] == "content" and message["id"] == value.id]
    assert len(passed) == 1
    assert not [message for message in one.heard if message["action"] == "content"]


async def test_a_value_is_absent_once_both_servers_have_said_so(
    node: DetachedNode, servers: tuple[_Server, _Server]
) -> None:
    one, two = servers
    loading = asyncio.create_task(node.load(ABSENT, timeout=60))
    for _ in range(5):
        await _settle(node, one)
    assert not node._host.store.cores[ABSENT].absent  # type: ignore[index]
    await _settle(node, two)
    assert node._host.store.cores[ABSENT].absent  # type: ignore[index]
    loading.cancel()


async def test_a_value_is_absent_if_the_other_connection_ends_before_its_answer(
    node: DetachedNode, servers: tuple[_Server, _Server]
) -> None:
    one, _ = servers
    looking = asyncio.create_task(node._host.load_header(ABSENT, timeout=60))
    await asyncio.sleep(0)
    await _settle(node, one)
    assert not looking.done()
    node.connections[1]._disconnected()
    await looking
    loading = asyncio.create_task(node.load_map(ABSENT, timeout=60))
    while not loading.done():
        await _settle(node, one)
    with pytest.raises(ValueNotFound):
        await loading


async def test_what_one_server_forges_is_taken_from_the_other(
    node: DetachedNode, servers: tuple[_Server, _Server]
) -> None:
    """A forged session is ignored for the connection that sent it only."""
    one, two = servers
    writer = DetachedNode(node.credentials)
    elsewhere = _Server(writer, 0)
    elsewhere.store.cores.update(one.store.cores)
    loading = asyncio.create_task(writer.login())
    while not loading.done():
        await _settle(writer, elsewhere)
    value = writer.create_group().create_map({"x": 1})
    await _settle(writer, elsewhere)
    for server in servers:
        server.store.cores.update(elsewhere.store.cores)
    signature = one.store.cores[value.id].sessions[writer._host.writer.session]
    good, signature.signature = signature.signature, "signature_z" + "1" * 64
    loading = asyncio.create_task(node.load_map(value.id, timeout=60))
    await asyncio.sleep(0)
    await _settle(node, one)
    assert node._host.store.cores[value.id].rejected
    signature.signature = good
    two.heard.clear()
    await _settle(node, two)
    loads = [message for message in two.heard if message["id"] == value.id and message["action"] == "load"]
    claimed = [message["sessions"] for message in loads]
    assert claimed
    assert writer._host.writer.session not in claimed[0], "the other server would not send what the node claims to have"
    assert (await loading).get("x") == 1
    assert not node._host.store.cores[value.id].rejected


def test_a_node_needs_a_server() -> None:
    with pytest.raises(InvalidArgument, match="pass its URL"):
        Node([], Credentials.generate())


def test_a_server_that_is_named_twice_is_used_once() -> None:
    node = DetachedNode.__new__(DetachedNode)
    Node.__init__(node, ["ws://one", "ws://two", "ws://one"], Credentials.generate())
    assert [connection.transport.server for connection in node.connections] == ["ws://one", "ws://two"]
