"""What a caller can wait for: free buffer space, the upload of one value, one of many queued loads."""

import asyncio

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange

from reside.jazz import JazzTimeout, NodeClosed
from reside.jazz.sync.load_queue import MAX_IN_FLIGHT
from reside.jazz.wire.random_ids import new_uniqueness

pytestmark = pytest.mark.anyio


async def test_drain_waits_while_more_is_written_than_sent(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({})
    await writer.drain()
    value.set("x", "x" * 200_000)
    waiting = asyncio.create_task(writer.drain())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not waiting.done()
    assert writer.statistics.buffered > 200_000
    writer.take()
    await waiting
    assert writer.statistics.buffered == 0


async def test_drain_does_not_wait_without_a_connection(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({})
    writer.cut()
    value.set("x", "x" * 200_000)
    await writer.drain()
    await writer.close()
    with pytest.raises(NodeClosed):
        await writer.drain()


async def test_uploaded_waits_for_one_value_only(hub: DetachedNode, writer: DetachedNode) -> None:
    group = writer.create_group()
    one = group.create_map({"x": 1})
    await exchange(hub, writer)
    await one.uploaded()
    one.set("x", 2)
    two = group.create_map({"x": 1})
    waiting = asyncio.create_task(one.uploaded())
    await asyncio.sleep(0)
    (first, *_) = writer.take()
    assert first["id"] == one.id
    assert not waiting.done()
    hub.give(first)
    writer.give(*hub.take())
    await waiting
    with pytest.raises(JazzTimeout, match=rf"1 values not flushed .*{two.id}.*did not answer"):
        await two.uploaded(timeout=0.01)


async def test_an_empty_feed_is_uploaded_when_its_header_is(hub: DetachedNode, writer: DetachedNode) -> None:
    feed = writer.create_group().create_feed()
    waiting = asyncio.create_task(feed.uploaded())
    await asyncio.sleep(0)
    assert not waiting.done()
    await exchange(hub, writer)
    await waiting


async def test_at_most_a_thousand_loads_are_requested_at_once() -> None:
    node = DetachedNode()
    ids = [f"co_{new_uniqueness()}" for _ in range(MAX_IN_FLIGHT + 100)]
    loads = [asyncio.create_task(node.load(co_id)) for co_id in ids]
    await asyncio.sleep(0)
    asked = node.take()
    assert len(asked) == node.statistics.loads == MAX_IN_FLIGHT
    for message in asked[:60]:
        node.give({"action": "known", "id": message["id"], "header": False, "sessions": {}})
    assert len([message for message in node.take() if message["id"] in ids[MAX_IN_FLIGHT:]]) == 60
    node.cut()
    assert node.statistics.loads == 0
    node.connect()
    assert len(node.take()) == MAX_IN_FLIGHT
    for load in loads:
        load.cancel()
    await asyncio.wait(loads)
