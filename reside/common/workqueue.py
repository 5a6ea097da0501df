"""Work queue: run a handler for keys. `reside.common.lanes` decides the order; the clock and the tasks are here.

Level-triggered: the queue contains keys only, and a handler reads the current state of its key. Keys of one lane are
handled one after another. After an error of a handler, the `Verdict` decides: retry with back-off, wait for a change of
the key, or end the queue, and with it the process, because the error is a bug.
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
    """What the queue does after an error of a handler."""

    RETRY = "handle the key again, with back-off"
    WAIT = "wait until the key is added again"
    RAISE = "end the queue with the error"


def judge(error: Exception) -> Verdict:
    """Return the default verdict: retry after an expected error, end the queue after any other."""
    return Verdict.RETRY if is_expected(error) else Verdict.RAISE


@dataclass(frozen=True)
class Statistics:
    """The state of a queue at one moment.

    Attributes:
        waiting: keys that wait, including retries.
        running: keys that are being handled.
        failing: keys whose last attempt failed and that will be retried.
        oldest_s: seconds for which a key has been due and not handled; 0: none is due.
    """

    waiting: int
    running: int
    failing: int
    oldest_s: float


def _own_lane(key: str) -> str:
    return key


class WorkQueue:
    """Queue of keys and their handler.

    Args:
        name: name of the queue, for logs and names of tasks.
        handler: handles a key by its current state.
        workers: number of lanes that are handled in parallel.
        backoff: pauses after failures.
        lane_of: returns the lane of a key; None: each key has its own.
        judge: returns what to do after an error of the handler.
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
        """Queue `key`, due in `after` seconds; if it is being handled, it is handled again afterwards."""
        self._lanes.add(key, self._now() + after)
        self._update()

    @property
    def idle(self) -> bool:
        """Whether no key is being handled, and all waiting keys are retries."""
        return self._lanes.idle

    def statistics(self) -> Statistics:
        """Return the number of keys that wait, run and fail at this moment."""
        lanes = self._lanes
        return Statistics(len(lanes.waiting), len(lanes.running), len(lanes.failures), lanes.oldest_s(self._now()))

    async def wait_idle(self) -> None:
        """Wait until the queue is idle."""
        await self._idle.wait()

    async def drain(self) -> None:
        """Start no further handler, and wait for those that run."""
        self._draining = True
        while self._lanes.running:
            self._changed.clear()
            await self._changed.wait()

    async def run(self) -> None:
        """Handle keys until cancelled, which cancels the handlers, too.

        Raises:
            Exception: the error of a handler that ends the queue; a group if several fail at the same moment.
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
            now = self._now()  # one time for both: a key that becomes due between them would wait for ever
            key = None if self._draining else self._lanes.take(now)
            if key is not None:
                tasks.create_task(self._handle(key), name=f"{self._name} {key}")
                continue
            try:
                async with asyncio.timeout(self._lanes.next_due(now)):
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
            _log.warning("failed; waiting for a change", queue=self._name, key=key, kind=kind, error=message)
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
