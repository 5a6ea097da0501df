"""A work queue with short pauses, and a task that runs it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from reside.common import workqueue
from reside.common.backoff import Backoff
from reside.common.workqueue import Verdict, WorkQueue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


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
