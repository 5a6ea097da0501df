"""The work queue: runs a handler for keys. `reside.common.lanes` decides which; the clock and the tasks are here.

Level-triggered: the queue holds keys only, and a handler reads the present state of its key. Keys of one lane are
handled one after another. A handler returns or raises, and what follows from an error is the queue's `Verdict`: retry
with back-off, wait for a change of the key, or end the queue, and with it the process, since the error is a bug.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import structlog

from reside.common.lanes import Lanes
from reside.common.transience import is_expected, is_transient, safe_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reside.common.backoff import Backoff

_log = structlog.get_logger(__name__)


class Verdict(Enum):
    """What follows from an error of a handler."""

    RETRY = "handle the key again, with back-off"
    WAIT = "wait until the key is added again"
    RAISE = "end the queue with the error"


def judge(error: Exception) -> Verdict:
    """Return the usual verdict: retry after any expected error, end the queue after a bug."""
    return Verdict.RETRY if is_expected(error) else Verdict.RAISE


@dataclass(frozen=True)
class Statistics:
    """The state of a queue at one moment.

    Attributes:
        waiting: keys that wait, retries included.
        running: keys that are being handled.
        failing: keys whose last attempt failed and that are retried.
    """

    waiting: int
    running: int
    failing: int


def _own_lane(key: str) -> str:
    return key


class WorkQueue:
    """Keys to handle.

    Args:
        name: what is queued, for logs and names of tasks.
        handler: brings what a key names to its desired state.
        workers: how many lanes are worked on at once.
        backoff: pauses after failures.
        lane_of: returns the lane of a key; None: each key has its own.
        judge: returns what follows from an error of the handler.
    """

    def __init__(
        self,
        name: str,
        handler: Callable[[str], Awaitable[None]],
        *,
        workers: int,
        backoff: Backoff,
        lane_of: Callable[[str], str] = _own_lane,
        judge: Callable[[Exception], Verdict] = judge,
    ) -> None:
        self._name = name
        self._handler = handler
        self._judge = judge
        self._lanes = Lanes(lane_of, workers, backoff)
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    def add(self, key: str, after: float = 0.0) -> None:
        """Have `key` handled, in `after` seconds at the earliest; again after a handling that is under way."""
        self._lanes.add(key, self._now() + after if after else 0.0)
        self._update()

    @property
    def idle(self) -> bool:
        """Whether no key is being handled, and all that wait are retries."""
        return self._lanes.idle

    def statistics(self) -> Statistics:
        """Return how many keys wait, run and fail at this moment."""
        return Statistics(len(self._lanes.waiting), len(self._lanes.running), len(self._lanes.failures))

    async def wait_idle(self) -> None:
        """Wait until the queue is idle."""
        await self._idle.wait()

    async def drain(self) -> None:
        """Take no further key, and wait for those that are being handled."""
        self._draining = True
        while self._lanes.running:
            self._changed.clear()
            await self._changed.wait()

    async def run(self) -> None:
        """Handle keys until cancelled; cancelling cancels the handlers, too.

        Raises:
            Exception: the error of a handler that ends the queue; in a group if several fail at the same moment.
        """
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._start_handlers(tasks)
        except BaseExceptionGroup as failed:
            if len(failed.exceptions) == 1:
                raise failed.exceptions[0] from None
            raise

    async def _start_handlers(self, tasks: asyncio.TaskGroup) -> None:
        while True:
            self._changed.clear()
            key = None if self._draining else self._lanes.take(self._now())
            if key is not None:
                tasks.create_task(self._handle(key), name=f"{self._name} {key}")
                continue
            try:
                async with asyncio.timeout(self._lanes.next_due(self._now())):
                    await self._changed.wait()
            except TimeoutError:
                continue  # a delayed key is due

    async def _handle(self, key: str) -> None:
        try:
            await self._handler(key)
        except asyncio.CancelledError:
            self._lanes.done(key)
            raise
        except Exception as error:
            verdict = self._judge(error)
            if verdict is Verdict.RAISE:
                raise
            self._failed(key, error, verdict)
        else:
            self._lanes.done(key)
        self._update()

    def _failed(self, key: str, error: Exception, verdict: Verdict) -> None:
        kind, message = type(error).__name__, safe_text(error)
        if verdict is Verdict.WAIT:
            self._lanes.done(key)
            _log.warning("failed; waits for a change", queue=self._name, key=key, kind=kind, error=message)
            return
        pause = self._lanes.failed(key, self._now())
        attempt = self._lanes.failures[key]
        log = _log.info if is_transient(error) else _log.warning
        log("failed; retrying", queue=self._name, key=key, kind=kind, error=message, attempt=attempt, seconds=pause)

    def _update(self) -> None:
        self._changed.set()
        if self._lanes.idle:
            self._idle.set()
        else:
            self._idle.clear()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
