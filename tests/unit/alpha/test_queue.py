"""The leader's queue: keys are handled level-triggered, one at a time each, again after a failure."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest

from reside.alpha.queue import Queue
from reside.common.backoff import Backoff
from reside.model.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(queue: Queue) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        with anyio.fail_after(10):
            yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_key_put_often_while_it_waits_is_handled_once() -> None:
    handled: list[str] = []
    done = asyncio.Event()

    async def handle(key: str) -> None:
        handled.append(key)
        if key == "last":
            done.set()

    queue = Queue(handle)
    for _ in range(3):
        queue.put("a")
    queue.put("last")
    async with running(queue):
        await done.wait()
    assert handled == ["a", "last"]


async def test_a_key_put_while_it_is_handled_is_handled_once_more_and_never_twice_at_once() -> None:
    inside, count = 0, 0
    done = asyncio.Event()

    async def handle(key: str) -> None:
        nonlocal inside, count
        inside, count = inside + 1, count + 1
        assert inside == 1
        if count == 1:
            queue.put(key)
            queue.put(key)
        await asyncio.sleep(0)
        inside -= 1
        if count == 2:
            done.set()

    queue = Queue(handle)
    queue.put("a")
    async with running(queue):
        await done.wait()
        await asyncio.sleep(0)
    assert count == 2


async def test_a_failed_key_is_tried_again_without_being_put() -> None:
    attempts = 0
    done = asyncio.Event()

    async def handle(_key: str) -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 4:
            raise NotReady("not yet")
        done.set()

    queue = Queue(handle, Backoff(first=0.001))
    queue.put("a")
    async with running(queue):
        await done.wait()
    assert attempts == 4


async def test_a_bug_ends_the_queue_loudly() -> None:
    async def handle(_key: str) -> None:
        raise ZeroDivisionError

    queue = Queue(handle)
    queue.put("a")
    with anyio.fail_after(10), pytest.raises(ExceptionGroup) as caught:
        await queue.run()
    assert caught.group_contains(ZeroDivisionError)
