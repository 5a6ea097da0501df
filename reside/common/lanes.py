"""Decide which key of a work queue to handle next. Pure: uses neither a clock nor tasks.

A key says only that something about it changed; its handler reads the current state. A key is handled in a lane, and
the number of lanes is limited. A key that is added several times while it waits is handled once; one that is added
while it is handled is handled again afterwards. A failure delays a key with back-off; another `add` ends the delay.

A key that was added is *fresh*; one that waits because it failed is a *retry*. Fresh keys are handled first, urgent
ones before the others, and retries never take the last lane. So keys that fail again and again, however slowly, don't
delay a change. Groups of keys take turns: thousands of keys of one group delay those of another by one key at a time.
Each call costs O(log n) for n waiting keys.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final

from reside.common.fair_queue import FairQueue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reside.common.backoff import Backoff


_OUTDATED_PER_KEY: Final = 4
_FEW: Final = 64
"""The heap is rebuilt when it is longer than that: outdated entries of keys that fail again and again fill it."""


@dataclass(frozen=True)
class Waiting:
    """A key that waits: when it is due, and whether it is a retry."""

    due: float
    retry: bool = False


@dataclass
class Lanes:
    """The keys that wait, the ones that are being handled, and the failures of each.

    Args:
        limit: number of lanes: keys that are handled in parallel.
        backoff: pauses after failures.
        draw: returns a random number from 0 to 1 for the jitter of each pause.
        urgent: returns whether a key is handled before other fresh ones.
        group: returns the group of a key when it becomes due; groups take turns.
    """

    limit: int
    backoff: Backoff
    draw: Callable[[], float] = random.random
    urgent: Callable[[str], bool] = lambda _: False
    group: Callable[[str], str] = lambda _: ""
    waiting: dict[str, Waiting] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    failures: dict[str, int] = field(default_factory=dict)
    """Key → number of consecutive failures."""
    waited_s: float = 0.0
    """Seconds for which the key that was taken last had been due."""
    _again: dict[str, float] = field(default_factory=dict)
    """Key that was added while it is handled → time when it is due again."""
    _times: list[tuple[float, int, str]] = field(default_factory=list)
    """Heap of the times at which waiting keys become due. An entry is outdated if `waiting` has another time."""
    _due: tuple[FairQueue, FairQueue, FairQueue] = field(
        default_factory=lambda: (FairQueue(), FairQueue(), FairQueue())
    )
    """The keys that are due: urgent ones, other fresh ones, and retries."""
    _fresh: int = 0
    """Number of fresh keys that wait."""
    _numbers: Iterator[int] = field(default_factory=count)

    def add(self, key: str, due: float = 0.0) -> None:
        """Note that `key` must be handled, not before `due`."""
        if key in self.running:
            self._again[key] = min(self._again.get(key, due), due)
            return
        before = self.waiting.get(key)
        if before is None or before.retry or before.due > due:
            self._wait(key, Waiting(due if before is None else min(before.due, due)))

    def take(self, now: float) -> str | None:
        """Return the next key to handle and mark it as running; None if no key is due or no lane is free."""
        self._become_due(now)
        free = self.limit - len(self.running)
        urgent, fresh, retries = self._due
        if free > 0 and (urgent or fresh):
            key = (urgent or fresh).take()
        elif (free > 1 or (free and self.limit == 1)) and retries:
            key = retries.take()
        else:
            return None
        self.waited_s = max(0.0, now - self.waiting[key].due)
        self._forget(key)
        self.running.add(key)
        return key

    def next_due(self, now: float) -> float | None:
        """Return the seconds until a waiting key becomes due; None if all waiting keys are due, or none waits."""
        self._become_due(now)
        return self._times[0][0] - now if self._times and len(self.running) < self.limit else None

    def oldest_s(self, now: float) -> float:
        """Return the seconds for which a waiting key has been due; 0 if none is due."""
        return max(0.0, now - min((entry.due for entry in self.waiting.values()), default=now))

    def done(self, key: str) -> None:
        """Note that `key` was handled, or failed and must wait for a change."""
        self.failures.pop(key, None)
        self._end(key)

    def failed(self, key: str, now: float, backoff: Backoff | None = None) -> float:
        """Note that `key` failed and is to be retried; return the pause in seconds.

        Args:
            key: the key.
            now: the current time.
            backoff: the pauses after failures of this kind; None: those of the queue.
        """
        failures = self.failures[key] = self.failures.get(key, 0) + 1
        pause = (backoff or self.backoff).pause(failures, self.draw())
        self._end(key)
        added = self.waiting.get(key)
        if added is None or added.due > now + pause:
            self._wait(key, Waiting(now + pause, retry=True))
        return pause

    def resume(self, keys: Iterable[str], now: float) -> None:
        """Make the retries of these keys due now, and the pauses after their next failures short again.

        Args:
            keys: keys whose failures had one cause, which is gone.
            now: the current time.
        """
        for key in keys:
            if key in self.failures:
                self.failures[key] = 1
            entry = self.waiting.get(key)
            if entry is not None and entry.retry and entry.due > now:
                self._wait(key, Waiting(now, retry=True))

    @property
    def idle(self) -> bool:
        """Whether no key is being handled, and all waiting keys are retries."""
        return not self.running and not self._fresh

    def _end(self, key: str) -> None:
        self.running.discard(key)
        if (due := self._again.pop(key, None)) is not None:
            self._wait(key, Waiting(due))

    def _wait(self, key: str, entry: Waiting) -> None:
        self._forget(key)
        self.waiting[key] = entry
        self._fresh += not entry.retry
        heappush(self._times, (entry.due, next(self._numbers), key))
        if len(self._times) > _OUTDATED_PER_KEY * len(self.waiting) + _FEW:
            later = [(entry.due, next(self._numbers), key) for key, entry in self.waiting.items()]
            self._times = sorted(each for each in later if each[2] not in self._place(each[2]))

    def _forget(self, key: str) -> None:
        before = self.waiting.pop(key, None)
        if before is not None:
            self._fresh -= not before.retry
            self._place(key, before).discard(key)

    def _become_due(self, now: float) -> None:
        """Move the keys that are due by now out of the heap, and drop its outdated entries."""
        while self._times:
            due, _, key = self._times[0]
            entry = self.waiting.get(key)
            is_current = entry is not None and entry.due == due and key not in self._place(key)
            if is_current and due > now:
                return
            heappop(self._times)
            if is_current:
                self._place(key).add(key, self.group(key))

    def _place(self, key: str, entry: Waiting | None = None) -> FairQueue:
        """Return the keys among which a waiting key is once it is due."""
        is_retry = (entry or self.waiting[key]).retry
        return self._due[2 if is_retry else 0 if self.urgent(key) else 1]
