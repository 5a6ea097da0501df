"""The end of an event-loop turn: watchers are called, and writes are sent in their order."""

import asyncio
import gc
from typing import Any

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange

from reside.jazz import CoMap

pytestmark = pytest.mark.anyio


def sent(messages: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return the value's id and the number of transactions of each content message."""
    found = []
    for message in messages:
        if message["action"] == "content":
            batches = message["new"].values()
            found.append((message["id"], sum(len(batch["newTransactions"]) for batch in batches)))
    return found


async def test_values_are_sent_in_the_order_of_their_writes(hub: DetachedNode, writer: DetachedNode) -> None:
    group = writer.create_group()
    one, two = group.create_map({"x": 0}), group.create_map({"x": 0})
    await exchange(hub, writer)
    one.set("x", 1)
    one.set("x", 2)
    two.set("x", 1)
    two.set("x", 2)
    one.set("x", 3)
    assert sent(writer.take()) == [(one.id, 2), (two.id, 2), (one.id, 1)]


async def test_many_values_created_in_one_turn_are_all_sent(hub: DetachedNode, writer: DetachedNode) -> None:
    group = writer.create_group()
    await exchange(hub, writer)
    ids = [group.create_map({"number": number}).id for number in range(300)]
    for _ in ids:  # each turn sends one at least
        await asyncio.sleep(0)
    assert [co_id for co_id, _ in sent(writer.take_queued())] == ids


async def test_the_turns_of_a_stream_share_messages(hub: DetachedNode, writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 0})
    await exchange(hub, writer)
    for number in range(50):
        value.set("x", number)
        await asyncio.sleep(0)
    messages = sent(writer.take())
    assert sum(count for _, count in messages) == 50
    assert len(messages) < 25


async def test_writes_are_sent_before_callbacks_are_called_and_the_writes_of_callbacks_afterwards(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    value = writer.create_group().create_map({"x": 0})
    await exchange(hub, writer)
    queued: list[list[tuple[str, int]]] = []

    def answer(value: CoMap) -> None:
        queued.append(sent(writer.take_queued()))
        if value.get("seen") != value["x"]:
            value.set("seen", value["x"])

    value.on_change(answer)
    value.set("x", 1)
    writer._host.writer.stop_batching()
    await asyncio.sleep(0)
    assert value["seen"] == 1
    assert queued == [[(value.id, 1)]]
    writer._host.writer.stop_batching()
    await asyncio.sleep(0)
    assert queued == [[(value.id, 1)], [(value.id, 1)]]


async def test_a_failing_callback_does_not_prevent_others(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 0})
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    seen: list[int] = []

    def fail(_: CoMap) -> None:
        raise RuntimeError("of the subscriber")

    value.on_change(fail)
    value.on_change(lambda value: seen.append(value["x"]))
    await asyncio.sleep(0)
    value.set("x", 1)
    await asyncio.sleep(0)
    assert seen == [1]
    assert [str(context["exception"]) for context in failures] == ["of the subscriber"]
    assert value.id in failures[0]["message"]


async def test_a_callback_that_was_unsubscribed_by_another_is_not_called(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 0})
    seen: list[str] = []

    def first(_: CoMap) -> None:
        seen.append("first")
        stop()

    value.on_change(first)
    stop = value.on_change(lambda _: seen.append("second"))
    value.set("x", 1)
    await asyncio.sleep(0)
    assert seen == ["first"]


async def test_a_callback_unsubscribes_itself(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 0})
    seen: list[Any] = []

    def once(changed: CoMap) -> None:
        seen.append(changed["x"])
        stop()
        stop()

    stop = value.on_change(once)
    for number in (1, 2):
        value.set("x", number)
        await asyncio.sleep(0)
    assert seen == [1]


async def test_a_watch_is_closed_inside_of_its_loop(writer: DetachedNode) -> None:
    value = writer.create_group().create_map({"x": 0})
    seen = []
    changes = value.watch()
    async for state in changes:
        seen.append(state["x"])
        changes.close()
        value.set("x", 1)
    assert seen == [0]
    assert writer.statistics.watchers == 0


async def test_a_callback_that_raises_cancelled_error_does_not_prevent_others(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    value = writer.create_group().create_map({"x": 0})
    await exchange(hub, writer)
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    seen: list[int] = []
    value.on_change(lambda _: cancelled.result())
    value.on_change(lambda value: seen.append(value["x"]))
    value.set("x", 1)
    writer._host.writer.stop_batching()
    await asyncio.sleep(0)
    assert seen == [1]
    assert sent(writer.take_queued()) == [(value.id, 1)]
    assert [type(context["exception"]) for context in failures] == [asyncio.CancelledError]


async def test_iterators_that_are_dropped_without_close_leave_no_subscription(writer: DetachedNode) -> None:
    group = writer.create_group()
    for _ in range(2_000):
        group.create_map({}).watch()
    gc.collect()
    assert writer._host.watches.count == 0
    assert len(writer._host.watches._iterators) < 1_000
