"""Decide which key of a work queue to handle next. Pure: uses neither a clock nor tasks.

A key says only that something about it changed; its handler reads the current state. Keys of one lane are handled one
after another; several lanes are handled in parallel, up to a limit. A key that is added several times while it waits is
handled once; one that is added while it is handled is handled again afterwards. A failure delays a key with back-off;
another `add` ends the delay.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.common.backoff import Backoff


@dataclass
class Lanes:
    """The keys that wait, the ones that are being handled, and the failures of each.

    Args:
        lane_of: returns the lane of a key.
        limit: number of lanes that are handled in parallel.
        backoff: pauses after failures.
    """

    lane_of: Callable[[str], str]
    limit: int
    backoff: Backoff
    waiting: dict[str, float] = field(default_factory=dict)
    """Key → time when it is due, in the order of arrival."""
    running: set[str] = field(default_factory=set)
    failures: dict[str, int] = field(default_factory=dict)
    """Key → number of consecutive failures."""
    _again: dict[str, float] = field(default_factory=dict)
    """Key that was added while it is handled → time when it is due again."""

    def add(self, key: str, due: float = 0.0) -> None:
        """Note that `key` must be handled, not before `due`."""
        times = self._again if key in self.running else self.waiting
        times[key] = min(times.get(key, due), due)

    def take(self, now: float) -> str | None:
        """Return the next key to handle and mark it as running; None if no key is due."""
        if len(self.running) >= self.limit:
            return None
        busy = {self.lane_of(key) for key in self.running}
        for key, due in self.waiting.items():
            if due <= now and self.lane_of(key) not in busy:
                del self.waiting[key]
                self.running.add(key)
                return key
        return None

    def next_due(self, now: float) -> float | None:
        """Return the seconds until a waiting key becomes due; None if all waiting keys are due, or none waits."""
        later = [due - now for due in self.waiting.values() if due > now]
        return min(later) if later and len(self.running) < self.limit else None

    def oldest_s(self, now: float) -> float:
        """Return the seconds for which a waiting key has been due; 0 if none is due."""
        return max(0.0, now - min(self.waiting.values(), default=now))

    def done(self, key: str) -> None:
        """Note that `key` was handled, or failed and must wait for a change."""
        self.failures.pop(key, None)
        self._end(key)

    def failed(self, key: str, now: float) -> float:
        """Note that `key` failed and is to be retried; return the pause in seconds."""
        count = self.failures[key] = self.failures.get(key, 0) + 1
        pause = self.backoff.pause(count)
        self._end(key)
        self.add(key, now + pause)
        return pause

    @property
    def idle(self) -> bool:
        """Whether no key is being handled, and all waiting keys are retries."""
        return not self.running and all(key in self.failures for key in self.waiting)

    def _end(self, key: str) -> None:
        self.running.discard(key)
        if (due := self._again.pop(key, None)) is not None:
            self.add(key, due)
