"""Fenced writes: a check that raises refuses a write before anything of it exists, and before it is sent."""

import asyncio

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange

from reside.jazz import CoMap, NodeClosed, fenced_writes

pytestmark = pytest.mark.anyio


class Fence:
    """A check that refuses once it is closed."""

    def __init__(self) -> None:
        self.closed = False

    def check(self) -> None:
        """Raise if the fence is closed."""
        if self.closed:
            raise PermissionError("too late")


@pytest.fixture
def fence() -> Fence:
    return Fence()


async def test_every_kind_of_write_is_refused_and_changes_nothing(writer: DetachedNode, fence: Fence) -> None:
    group = writer.create_group()
    values = group.create_map({"a": 1}), group.create_list(["a"])
    with fenced_writes(fence.check):
        values[0].set("a", 2)
        fence.closed = True
        writes = [
            lambda: values[0].set("a", 3),
            lambda: values[0].delete("a"),
            lambda: values[1].append("b"),
            lambda: group.create_map({"a": 1}),
            writer.create_group,
        ]
        for write in writes:
            with pytest.raises(PermissionError, match="too late"):
                write()
    assert values[0].as_dict() == {"a": 2}
    assert values[1].as_list() == ["a"]
    values[0].set("a", 4)
    assert values[0]["a"] == 4


async def test_all_nested_fences_are_asked(writer: DetachedNode, fence: Fence) -> None:
    value = writer.create_group().create_map()
    fence.closed = True
    with fenced_writes(Fence().check), fenced_writes(fence.check), pytest.raises(PermissionError):
        value.set("a", 1)
    with fenced_writes(fence.check), fenced_writes(Fence().check), pytest.raises(PermissionError):
        value.set("a", 1)


async def test_a_fence_applies_to_the_task_and_those_that_it_starts_only(writer: DetachedNode, fence: Fence) -> None:
    value = writer.create_group().create_map()

    async def write(key: str) -> None:
        value.set(key, 1)

    fence.closed = True
    outside = asyncio.ensure_future(write("outside"))
    with fenced_writes(fence.check):
        inside = asyncio.ensure_future(write("inside"))
        with pytest.raises(PermissionError):
            await inside
    await outside
    assert value.as_dict() == {"outside": 1}


@pytest.fixture
async def value(writer: DetachedNode, hub: DetachedNode) -> CoMap:
    """Return a map that the server has."""
    made = writer.create_group().create_map({"a": 1})
    await exchange(hub, writer)
    return made


def _sent(node: DetachedNode) -> list[str]:
    return [message["id"] for message in node.take() if message["action"] == "content"]


async def test_a_write_that_its_fence_refuses_before_it_is_sent_ends_the_node(
    writer: DetachedNode, value: CoMap, fence: Fence
) -> None:
    """A paused process woke up, and sent what it had written before: two load requests got one id."""
    with fenced_writes(fence.check):
        value.set("a", 2)
    fence.closed = True
    assert _sent(writer) == []
    with pytest.raises(NodeClosed, match="writes were not sent in time: too late"):
        value.set("a", 3)
    with pytest.raises(NodeClosed, match="too late"):
        await writer.until_closed()


async def test_a_write_that_its_fence_refuses_when_the_frame_is_complete_ends_the_node(
    writer: DetachedNode, value: CoMap, fence: Fence
) -> None:
    """A process was stopped between the check and the end of its turn: a version was created twice."""
    with fenced_writes(fence.check):
        value.set("a", 2)
    other = writer.create_group()
    writer._host.writer.send()
    fence.closed = True
    outbox = writer.connections[0].transport.outbox
    assert outbox.buffered > 0
    assert outbox.frame() is None
    assert outbox.buffered == 0
    with pytest.raises(NodeClosed, match="writes were not sent in time: too late"):
        other.create_map()


async def test_a_write_that_is_not_acknowledged_is_not_sent_again_after_its_fence_refuses_it(
    writer: DetachedNode, hub: DetachedNode, value: CoMap, fence: Fence
) -> None:
    with fenced_writes(fence.check):
        value.set("a", 2)
    assert _sent(writer) == [value.id]
    fence.closed = True
    writer.connect()
    for _ in range(3):
        hub.give(*writer.take())
        writer.give(*hub.take())
    assert hub.find(value.id) is None or _sent(writer) == []
    with pytest.raises(NodeClosed, match="too late"):
        await writer.until_closed()


async def test_a_fence_no_longer_matters_once_the_write_is_acknowledged(
    writer: DetachedNode, hub: DetachedNode, value: CoMap, fence: Fence
) -> None:
    with fenced_writes(fence.check):
        value.set("a", 2)
    await exchange(hub, writer)
    fence.closed = True
    value.set("a", 3)
    assert _sent(writer) == [value.id]
