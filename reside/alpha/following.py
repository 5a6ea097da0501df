"""What the leader has to look at: the replicas at the start of its term, and what changes in large maps and lists."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.jazz import CoList, CoMap, Tracker

_AT_ONCE: Final = 64
"""Replicas that are loaded at the same time. Each needs an answer of the sync server."""
_PASSES: Final = 2
"""Passes of the start that are made at the same time; changes have the other workers of the queue."""


class FirstPasses:
    """The replicas that existed at the start of a term: first all are followed, then each gets a pass, a few at a time.

    Args:
        replicas: the ids of their maps.

    Attributes:
        unfinished: the replicas whose first pass has not succeeded yet.
    """

    def __init__(self, replicas: Iterable[str]) -> None:
        self._unfollowed = list(replicas)
        self._waiting: dict[int, None] = {}
        self._begun: set[int] = set()
        self.unfinished: set[int] = set()

    @property
    def is_over(self) -> bool:
        """Whether each has been followed, and its pass has begun."""
        return not self._unfollowed and not self._waiting

    def next_to_follow(self) -> list[str]:
        """Return the ids of the next maps to load, and forget them."""
        found, self._unfollowed = self._unfollowed[:_AT_ONCE], self._unfollowed[_AT_ONCE:]
        return found

    def add(self, number: int) -> None:
        """Add a replica that is followed."""
        self._waiting[number] = None
        self.unfinished.add(number)

    def repeat(self, numbers: Iterable[int]) -> None:
        """Make another pass over these replicas."""
        self._waiting |= dict.fromkeys(numbers)

    def next_to_pass(self) -> list[int]:
        """Return the replicas whose passes begin now."""
        found = list(islice(self._waiting, max(0, _PASSES - len(self._begun))))
        for number in found:
            del self._waiting[number]
        self._begun.update(found)
        return found

    def ended(self, number: int, *, succeeded: bool) -> bool:
        """Note that a pass over a replica has ended; return whether other passes may begin now, or all are done."""
        was_first, was_begun = succeeded and number in self.unfinished, number in self._begun
        self._begun.discard(number)
        if was_first:
            self.unfinished.discard(number)
        return was_first and not self.unfinished if self.is_over else was_begun

    def waits(self, number: int) -> bool:
        """Return whether a pass over a replica will begin later anyway."""
        return number in self._waiting


class Changes:
    """What has changed in maps and lists since the last look; at the first look at a value, all that it has."""

    def __init__(self) -> None:
        self._trackers: dict[str, Tracker] = {}

    def of(self, value: CoMap | CoList) -> set[str]:
        """Return the keys of a map that have changed, or the texts that were inserted into a list."""
        if value.id not in self._trackers:
            self._trackers[value.id] = value.track()
        return self._trackers[value.id].take()

    def knows(self, value: CoMap | CoList) -> bool:
        """Return whether there was a look at a value."""
        return value.id in self._trackers

    def forget(self, value: CoMap | CoList) -> None:
        """Forget a value that was replaced."""
        self._trackers.pop(value.id, None)
