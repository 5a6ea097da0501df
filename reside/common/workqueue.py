"""Work queue: run a handler for keys. `reside.common.lanes` decides the order; the clock and the tasks are here.

Level-triggered: the queue contains keys only, and a handler reads the current state of its key. After an error of a
handler, the `Verdict` decides: retry with back-off, wait for a change of the key, put the key off because the error is
a bug, or end the queue, and with it the process.

Invariant: an error of one key does not stop the others. What ends the queue: its cancellation (a lost lease, the end of
the process), the verdict `RAISE`, and an error of the queue itself or of `judge`, after which its keys can't be relied
on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

import structlog

from reside.common.backoff import Backoff
from reside.common.lanes import Lanes
from reside.common.texts import shown
from reside.common.transience import is_expected, is_transient, place_of, safe_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_log = structlog.get_logger(__name__)

PUT_OFF: Final = Backoff(first=1.0, longest=600.0, jitter=0.25)
"""Pauses after unexpected errors. A bug that depends on timing passes soon; one that does not costs next to nothing."""

_STARTS_AT_ONCE: Final = 50
"""Handlers that start in one round of the event loop. A thousand would hold it up for a tenth of a second."""

_observers: list[Callable[[str], None]] = []


def observe_bugs(observer: Callable[[str], None]) -> None:
    """Call `observer` with the name of the queue at each unexpected error of a handler, in any queue."""
    _observers.append(observer)


class Verdict(Enum):
    """What the queue does after an error of a handler."""

    RETRY = "handle the key again, with back-off"
    WAIT = "wait until the key is added again"
    PUT_OFF = "count a bug, and handle the key again after growing pauses"
    RAISE = "end the queue with the error"


def judge(error: Exception) -> Verdict:
    """Return the default verdict: retry after an expected error, put the key off after any other."""
    return Verdict.RETRY if is_expected(error) else Verdict.PUT_OFF


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


class WorkQueue:
    """Queue of keys and their handler.

    Args:
        name: name of the queue, for logs, metrics and names of tasks.
        handler: handles a key by its current state.
        workers: number of keys that are handled in parallel.
        backoff: pauses after failures.
        judge: returns what to do after an error of the handler.
        urgent: returns whether a key is handled before others that did not fail.
        group: returns the group of a key; groups take turns, however many keys each has.
        attempts: consecutive failures after which a key waits for a change, unless the error is transient; None: no
            limit.
    """

    def __init__(
        self,
        name: str,
        handler: Callable[[str], Awaitable[None]],
        *,
        workers: int,
        backoff: Backoff,
        judge: Callable[[Exception], Verdict] = judge,
        urgent: Callable[[str], bool] = lambda _: False,
        group: Callable[[str], str] = lambda _: "",
        attempts: int | None = None,
    ) -> None:
        self.name = name
        self._handler = handler
        self._judge = judge
        self._attempts = attempts
        self._lanes = Lanes(workers, backoff, urgent=urgent, group=group)
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self._transient: set[str] = set()
        """Keys whose last error was transient."""
        self._observe_wait: Callable[[float], None] = lambda _: None

    def add(self, key: str, after: float = 0.0) -> None:
        """Queue `key`, due in `after` seconds; if it is being handled, it is handled again afterwards."""
        self._lanes.add(key, self._now() + after)
        self._update()

    def resume(self) -> None:
        """Handle the keys whose last error was transient without a further pause, because its cause is gone."""
        self._lanes.resume(self._transient, self._now())
        self._update()

    def observe_waits(self, observer: Callable[[float], None]) -> None:
        """Call `observer` with the seconds for which a key was due, each time before it is handled."""
        self._observe_wait = observer

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
        started = 0
        while True:
            self._changed.clear()
            now = self._now()  # one time for both: a key that becomes due between them would wait for ever
            key = None if self._draining else self._lanes.take(now)
            if key is not None:
                self._update_idle()
                self._observe_wait(self._lanes.waited_s)
                tasks.create_task(self._handle(key), name=f"{self.name} {key}")
                started += 1
                if started % _STARTS_AT_ONCE == 0:
                    await asyncio.sleep(0)
                continue
            try:
                async with asyncio.timeout(self._lanes.next_due(now)):
                    await self._changed.wait()
            except TimeoutError:
                continue  # a delayed key is due

    async def _handle(self, key: str) -> None:
        try:
            await self._handler(key)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                self._lanes.done(key)
                raise
            self._failed(key, _Stopped(error), Verdict.PUT_OFF)
        except Exception as error:
            verdict = self._judge(error)
            if verdict is Verdict.RAISE:
                raise
            self._failed(key, error, verdict)
        else:
            self._transient.discard(key)
            self._lanes.done(key)
        self._update()

    def _failed(self, key: str, error: Exception, verdict: Verdict) -> None:
        attempt = self._lanes.failures.get(key, 0) + 1
        is_bug = verdict is Verdict.PUT_OFF
        facts = {"queue": self.name, "key": shown(key), "kind": type(error).__name__, "error": safe_text(error)}
        if is_bug:
            for observe in _observers:
                observe(self.name)
            facts["at"] = place_of(error)
        passes = is_transient(error)
        if passes:
            self._transient.add(key)
        else:
            self._transient.discard(key)
        is_last = self._attempts is not None and attempt >= self._attempts and not passes
        if verdict is Verdict.WAIT or is_last:
            self._lanes.done(key)
            _log.warning("failed; waiting for a change", **facts, attempt=attempt)
            return
        pause = self._lanes.failed(key, self._now(), PUT_OFF if is_bug else None)
        log = _log.info if passes else _log.error if is_bug else _log.warning
        log("failed; retrying", **facts, attempt=attempt, seconds=pause)

    def _update(self) -> None:
        self._changed.set()
        self._update_idle()

    def _update_idle(self) -> None:
        if self._lanes.idle:
            self._idle.set()
        else:
            self._idle.clear()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()


class _Stopped(Exception):  # noqa: N818 - named after what happened
    """A handler was cancelled, but the queue was not: what it waited for was cancelled by someone else."""

    def __init__(self, error: asyncio.CancelledError) -> None:
        super().__init__()
        self.__traceback__ = error.__traceback__


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
