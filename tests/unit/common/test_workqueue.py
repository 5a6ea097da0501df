"""The work queue: a key is handled by one task at a time, when it is due, and once more if it was added meanwhile."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from unit.common.queues import QUICK, queue_of, running

from reside.common.backoff import Backoff
from reside.common.workqueue import Statistics, WorkQueue
from reside.model.errors import NotReady

pytestmark = pytest.mark.anyio


async def test_a_key_added_often_while_it_waits_is_handled_once() -> None:
    handled: list[str] = []

    async def handle(key: str) -> None:
        handled.append(key)

    queue = queue_of(handle)
    for _ in range(3):
        queue.add("a")
    queue.add("last")
    async with running(queue):
        await queue.wait_idle()
    assert handled == ["a", "last"]


async def test_a_key_added_while_it_is_handled_is_handled_once_more_and_never_twice_at_once() -> None:
    inside, count = 0, 0

    async def handle(key: str) -> None:
        nonlocal inside, count
        inside, count = inside + 1, count + 1
        assert inside == 1
        if count == 1:
            queue.add(key)
            queue.add(key)
        await asyncio.sleep(0)
        inside -= 1

    queue = queue_of(handle)
    queue.add("a")
    async with running(queue):
        await queue.wait_idle()
    assert count == 2


async def test_many_handlers_start_in_several_rounds_of_the_event_loop() -> None:
    rounds, loop, started = 0, asyncio.get_running_loop(), list[int]()

    def count() -> None:
        nonlocal rounds, counting
        rounds += 1
        counting = loop.call_soon(count)

    async def handle(_key: str) -> None:
        started.append(rounds)

    queue = WorkQueue("test", handle, workers=1000, backoff=QUICK)
    for number in range(200):
        queue.add(str(number))
    counting = loop.call_soon(count)
    async with running(queue):
        await queue.wait_idle()
    counting.cancel()
    assert len(started) == 200
    assert max(started.count(round_) for round_ in started) <= 50


async def test_no_more_keys_are_handled_at_once_than_there_are_workers() -> None:
    inside, most = 0, 0

    async def handle(_key: str) -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1

    queue = queue_of(handle, workers=3)
    for number in range(10):
        queue.add(str(number))
    async with running(queue):
        await queue.wait_idle()
    assert most == 3


async def test_a_key_that_becomes_due_while_the_queue_looks_for_one_is_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()
    monkeypatch.setattr(WorkQueue, "_now", staticmethod(lambda: next(ticks) * 0.6 * QUICK.first))
    attempts = 0
    done = asyncio.Event()

    async def handle(_key: str) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise NotReady("not yet")
        done.set()

    queue = queue_of(handle)
    queue.add("a")
    async with running(queue):
        await done.wait()
    assert attempts == 2


async def test_a_delayed_key_is_handled_when_it_is_due() -> None:
    loop, handled = asyncio.get_running_loop(), asyncio.Event()
    added_at = loop.time()

    async def handle(_key: str) -> None:
        handled.set()

    queue = queue_of(handle)
    queue.add("a", after=0.05)
    async with running(queue):
        await handled.wait()
    assert loop.time() - added_at >= 0.05


async def test_a_queue_is_not_idle_while_a_retry_is_handled() -> None:
    again, may_end = asyncio.Event(), asyncio.Event()
    attempts = 0

    async def handle(_key: str) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise NotReady("later")
        again.set()
        await may_end.wait()

    queue = queue_of(handle)
    queue.add("a")
    async with running(queue):
        await again.wait()
        assert not queue.idle
        waiting = asyncio.create_task(queue.wait_idle())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        may_end.set()
        await waiting


async def test_draining_ends_what_runs_and_begins_nothing() -> None:
    begun, may_end, handled = asyncio.Event(), asyncio.Event(), []

    async def handle(key: str) -> None:
        begun.set()
        await may_end.wait()
        handled.append(key)

    queue = queue_of(handle, workers=1)
    queue.add("one")
    queue.add("two")
    async with running(queue):
        await begun.wait()
        drained = asyncio.create_task(queue.drain())
        may_end.set()
        await drained
    assert handled == ["one"]


async def test_cancelling_the_queue_cancels_the_handlers() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def handle(_key: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    queue = queue_of(handle)
    queue.add("a")
    async with running(queue):
        await begun.wait()
    assert cancelled.is_set()


async def test_statistics_count_what_waits_runs_and_fails() -> None:
    begun = asyncio.Event()

    async def handle(key: str) -> None:
        if key == "failing":
            raise NotReady("not yet")
        begun.set()
        await asyncio.Event().wait()

    queue = WorkQueue("test", handle, workers=1, backoff=Backoff(first=60.0, longest=60.0))
    for key in ("failing", "running", "waiting"):
        queue.add(key)
    async with running(queue):
        await begun.wait()
        seen = queue.statistics()
        assert seen == Statistics(waiting=2, running=1, failing=1, oldest_s=seen.oldest_s)
