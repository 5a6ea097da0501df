"""What a work queue does when a handler fails: back off, try again, put off, or end."""

from __future__ import annotations

import asyncio

import anyio
import pytest
from support.eventually import eventually
from unit.common.queues import QUICK, queue_of, running

from reside.common import workqueue
from reside.common.backoff import Backoff
from reside.common.workqueue import Verdict, WorkQueue
from reside.model.errors import Conflict, InvalidInput, NotReady

pytestmark = pytest.mark.anyio


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
