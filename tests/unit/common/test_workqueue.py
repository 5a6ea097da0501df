"""The work queue: a key is handled by one task at a time, again after a failure, and a bug stops its key only."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from support.eventually import eventually

from reside.common import workqueue
from reside.common.backoff import Backoff
from reside.common.workqueue import Statistics, Verdict, WorkQueue
from reside.model.errors import Conflict, InvalidInput, NotReady

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

pytestmark = pytest.mark.anyio

QUICK = Backoff(first=0.001, longest=0.004)


def queue_of(
    handle: Callable[[str], Awaitable[None]],
    *,
    workers: int = 2,
    judge: Callable[[Exception], Verdict] = workqueue.judge,
    attempts: int | None = None,
) -> WorkQueue:
    return WorkQueue("test", handle, workers=workers, backoff=QUICK, judge=judge, attempts=attempts)


@asynccontextmanager
async def running(queue: WorkQueue) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        with anyio.fail_after(10):
            yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


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


async def test_a_failed_key_is_retried_without_being_added() -> None:
    attempts = 0
    done = asyncio.Event()

    async def handle(_key: str) -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 4:
            raise NotReady("not yet")
        done.set()

    queue = queue_of(handle)
    queue.add("a")
    async with running(queue):
        await done.wait()
    assert attempts == 4


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


async def test_a_key_with_the_verdict_wait_is_handled_again_only_when_it_is_added() -> None:
    attempts: dict[str, int] = {}
    passed = asyncio.Event()

    async def handle(key: str) -> None:
        attempts[key] = attempts.get(key, 0) + 1
        if key == "terminal":
            raise InvalidInput("never")
        if attempts[key] < 3:
            raise NotReady("not yet")
        passed.set()

    def judge(error: Exception) -> Verdict:
        return Verdict.WAIT if isinstance(error, InvalidInput) else workqueue.judge(error)

    queue = queue_of(handle, judge=judge)
    queue.add("terminal")
    queue.add("transient")
    async with running(queue):
        await passed.wait()
        await queue.wait_idle()
        assert attempts == {"terminal": 1, "transient": 3}
        queue.add("terminal")
        await queue.wait_idle()
    assert attempts == {"terminal": 2, "transient": 3}


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


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the pauses after bugs short."""
    monkeypatch.setattr(workqueue, "PUT_OFF", QUICK)


@pytest.fixture
def bugs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the queues that had bugs."""
    found: list[str] = []
    monkeypatch.setattr(workqueue, "_observers", [found.append])
    return found


@pytest.mark.parametrize(
    "bug",
    [ZeroDivisionError(), RecursionError(), UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"), KeyError("a")],
    ids=lambda bug: type(bug).__name__,
)
@pytest.mark.usefixtures("quickly")
async def test_a_bug_stops_its_key_only_which_is_counted_and_handled_again(bug: Exception, bugs: list[str]) -> None:
    attempts: dict[str, int] = {}
    again = asyncio.Event()

    async def handle(key: str) -> None:
        attempts[key] = attempts.get(key, 0) + 1
        if key == "bad":
            if attempts[key] == 3:
                again.set()
            raise bug

    queue = queue_of(handle)
    queue.add("bad")
    queue.add("good")
    async with running(queue):
        await again.wait()
        queue.add("good")
        await queue.wait_idle()
        await queue.drain()
    assert attempts["good"] == 2
    assert attempts["bad"] >= 3, "it may be tried again before the queue is drained"
    assert bugs == ["test"] * attempts["bad"]


@pytest.mark.usefixtures("quickly")
async def test_a_key_that_nobody_can_write_is_put_off_like_any_other() -> None:
    done = asyncio.Event()

    async def handle(key: str) -> None:
        if key == "good":
            done.set()
        raise NotReady(f"{key}: not yet")

    queue = queue_of(handle)
    queue.add("\ud800")
    queue.add("good")
    async with running(queue):
        await done.wait()
        await queue.wait_idle()
    assert queue.statistics().failing == 2


async def test_a_key_whose_errors_do_not_pass_waits_for_a_change_in_the_end() -> None:
    attempts = 0

    async def handle(_key: str) -> None:
        nonlocal attempts
        attempts += 1
        raise Conflict("never")

    queue = queue_of(handle, attempts=3)
    queue.add("a")
    async with running(queue):
        await eventually("the attempts", lambda: attempts == 3 and queue.statistics().waiting == 0)
        queue.add("a")
        await eventually("the attempts", lambda: attempts == 6)


async def test_transient_errors_are_retried_beyond_the_limit_of_attempts() -> None:
    attempts = 0

    async def handle(_key: str) -> None:
        nonlocal attempts
        attempts += 1
        raise NotReady("later")

    queue = queue_of(handle, attempts=3)
    queue.add("a")
    async with running(queue):
        await eventually("the attempts", lambda: attempts > 5)


async def test_keys_that_failed_by_an_outage_are_handled_at_once_when_it_has_ended() -> None:
    """A key that failed by something else goes on waiting."""
    errors: dict[str, Exception | None] = {"away": NotReady("away"), "wrong": Conflict("wrong")}
    handled: list[str] = []

    async def handle(key: str) -> None:
        handled.append(key)
        if (error := errors[key]) is not None:
            raise error

    queue = WorkQueue("test", handle, workers=2, backoff=Backoff(first=3600.0, longest=3600.0))
    for key in errors:
        queue.add(key)
    async with running(queue):
        await eventually("the failures", lambda: queue.statistics().failing == 2)
        errors |= {"away": None, "wrong": None}
        queue.resume()
        await eventually("the retry", lambda: queue.statistics().failing == 1)
    assert handled == ["away", "wrong", "away"]


async def test_an_error_of_several_tasks_is_what_all_of_them_are(bugs: list[str]) -> None:
    attempts = 0

    async def handle(_key: str) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise ExceptionGroup("unhandled errors in a TaskGroup", [NotReady("one"), NotReady("two")])

    queue = queue_of(handle)
    queue.add("a")
    async with running(queue):
        await eventually("the attempts", lambda: attempts == 2)
    assert not bugs


@pytest.mark.usefixtures("quickly")
async def test_a_handler_that_someone_else_cancels_is_handled_again() -> None:
    attempts = 0

    async def handle(_key: str) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise asyncio.CancelledError

    queue = queue_of(handle)
    queue.add("a")
    async with running(queue):
        await eventually("the attempts", lambda: attempts == 2)


async def test_the_verdict_raise_ends_the_queue() -> None:
    async def handle(_key: str) -> None:
        raise ZeroDivisionError

    queue = queue_of(handle, judge=lambda _: Verdict.RAISE)
    queue.add("a")
    with anyio.fail_after(10), pytest.raises(ZeroDivisionError):
        await queue.run()


async def test_an_error_of_the_queue_itself_ends_it() -> None:
    async def handle(_key: str) -> None:
        raise NotReady("not yet")

    def judge(_: Exception) -> Verdict:
        raise ZeroDivisionError

    queue = queue_of(handle, judge=judge)
    queue.add("a")
    with anyio.fail_after(10), pytest.raises(ZeroDivisionError):
        await queue.run()


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
