"""The queue's decisions: coalescing, serial lanes, a limit, growing pauses; and the pauses themselves."""

import asyncio

import pytest

from reside.common.backoff import Backoff
from reside.model.errors import InvalidInput, NotReady
from reside.sentinel.backoff import Temper
from reside.sentinel.lanes import Lanes
from reside.sentinel.queue import LaneQueue

QUICK = Backoff(first=0.001, longest=0.004)


def lanes(limit: int = 2) -> Lanes:
    """Lanes named by the part before the slash."""
    return Lanes(lambda key: key.partition("/")[0], limit, Backoff(first=1.0, longest=4.0))


def test_a_key_that_waits_is_there_once() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.add("a/1")
    assert queue.take(0) == "a/1"
    assert queue.take(0) is None


def test_keys_of_one_lane_are_handled_one_after_another_and_others_meanwhile() -> None:
    queue = lanes()
    for key in ("a/1", "a/2", "b/1"):
        queue.add(key)
    assert queue.take(0) == "a/1"
    assert queue.take(0) == "b/1"
    assert queue.take(0) is None
    queue.done("a/1")
    assert queue.take(0) == "a/2"


def test_no_more_lanes_than_the_limit() -> None:
    queue = lanes(limit=1)
    queue.add("a/1")
    queue.add("b/1")
    assert queue.take(0) == "a/1"
    assert queue.take(0) is None


def test_a_key_added_while_it_is_handled_is_handled_again() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.take(0)
    queue.add("a/1")
    assert queue.take(0) is None
    queue.done("a/1")
    assert queue.take(0) == "a/1"


def test_a_key_put_off_while_it_is_handled_waits_for_its_time() -> None:
    """The keeper puts an object off that was repaired too often; handled again at once it would spin."""
    queue = lanes()
    queue.add("a/1")
    queue.take(0)
    queue.add("a/1", due=5.0)
    queue.done("a/1")
    assert queue.take(0) is None
    assert queue.next_due(0) == 5.0
    assert queue.take(5.0) == "a/1"


def test_a_change_while_a_key_is_handled_does_not_wait_for_a_later_time() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.take(0)
    queue.add("a/1", due=5.0)
    queue.add("a/1")
    queue.done("a/1")
    assert queue.take(0) == "a/1"


def test_a_failed_key_is_put_off_ever_longer_up_to_a_bound() -> None:
    queue = lanes()
    queue.add("a/1")
    now, pauses = 0.0, []
    for _ in range(5):
        assert queue.take(now) == "a/1"
        pauses.append(queue.failed("a/1", now))
        assert queue.take(now) is None
        assert queue.next_due(now) == pauses[-1]
        now += pauses[-1]
    assert pauses == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_a_change_does_not_wait_for_the_pause_and_success_forgets_failures() -> None:
    queue = lanes()
    queue.add("a/1")
    queue.take(0)
    queue.failed("a/1", 0)
    queue.add("a/1")
    assert queue.take(0) == "a/1"
    queue.done("a/1")
    queue.add("a/1")
    queue.take(0)
    assert queue.failed("a/1", 0) == 1.0


def test_idle_means_that_nothing_waits_but_for_a_later_try() -> None:
    queue = lanes()
    assert queue.idle
    queue.add("a/1")
    assert not queue.idle
    queue.take(0)
    assert not queue.idle
    queue.failed("a/1", 0)
    assert queue.idle


def test_repairs_are_free_at_first_then_slower_and_forgotten_after_a_calm() -> None:
    temper = Temper(Backoff(first=1.0, longest=8.0, free=2), calm=100)
    for _ in range(2):
        temper.note("a", 0)
    assert temper.wait("a", 0) == 0
    temper.note("a", 0)
    assert temper.wait("a", 0) == 1.0
    assert temper.wait("a", 0.25) == 0.75
    temper.note("a", 1)
    assert temper.wait("a", 1) == 2.0
    assert temper.wait("b", 1) == 0
    assert temper.wait("a", 102) == 0


@pytest.mark.anyio
async def test_the_queue_retries_what_may_pass_and_leaves_what_only_a_change_cures() -> None:
    """A transient error is tried again until it passes; a terminal one waits for the next ``add``."""
    tries: dict[str, int] = {}
    passed = asyncio.Event()

    async def handle(key: str) -> None:
        tries[key] = tries.get(key, 0) + 1
        if key == "terminal":
            raise InvalidInput("never")
        if tries[key] < 3:
            raise NotReady("not yet")
        passed.set()

    queue = LaneQueue("test", handle, limit=2, backoff=QUICK)
    runner = asyncio.create_task(queue.run())
    queue.add("terminal")
    queue.add("transient")
    async with asyncio.timeout(10):
        await passed.wait()
        await queue.wait_idle()
    assert tries == {"terminal": 1, "transient": 3}
    runner.cancel()


@pytest.mark.anyio
async def test_draining_ends_what_runs_and_begins_nothing() -> None:
    begun, may_end, handled = asyncio.Event(), asyncio.Event(), []

    async def handle(key: str) -> None:
        begun.set()
        await may_end.wait()
        handled.append(key)

    queue = LaneQueue("test", handle, limit=1, backoff=QUICK)
    runner = asyncio.create_task(queue.run())
    queue.add("one")
    queue.add("two")
    async with asyncio.timeout(10):
        await begun.wait()
        drained = asyncio.create_task(queue.drain())
        may_end.set()
        await drained
    assert handled == ["one"]
    runner.cancel()


@pytest.mark.anyio
async def test_a_bug_in_a_handler_ends_the_queue() -> None:
    async def handle(_: str) -> None:
        raise KeyError("bug")

    queue = LaneQueue("test", handle, limit=1, backoff=QUICK)
    queue.add("one")
    with pytest.raises(ExceptionGroup):
        async with asyncio.timeout(10):
            await queue.run()
