"""Fights: another manager changes a field back again and again. Plain state.

The back-off of repairs bounds what a fight costs: its longest pause is shorter than the calm that ends a fight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reside.sentinel.objects.managed_fields import Managed, shortened, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

ROUNDS: Final = 3
"""Number of repairs of the same field, after changes by the same manager, from which on it is a fight."""
_MOST: Final = 16
"""Number of fields of one object that are counted; a fight that is lost from sight is found again."""


@dataclass(frozen=True)
class _Round:
    count: int
    last: float


@dataclass
class Fights:
    """The repairs of each object that may be rounds of a fight, by `Kind/name`.

    Args:
        calm: seconds without a repair of a field after which a fight about it has ended.
    """

    calm: float
    _rounds: dict[str, dict[Managed, _Round]] = field(default_factory=dict)

    def note(self, key: str, culprits: Iterable[Managed], now: float) -> list[Managed]:
        """Count a repair of an object; return the fights that begin with it."""
        self.expire(key, now)
        rounds = self._rounds.setdefault(key, {})
        begun = []
        for culprit in culprits:
            before = rounds.pop(culprit, _Round(0, now))
            rounds[culprit] = _Round(before.count + 1, now)
            if before.count + 1 == ROUNDS:
                begun.append(culprit)
        while len(rounds) > _MOST:
            del rounds[next(iter(rounds))]
        if not rounds:
            del self._rounds[key]
        return begun

    def expire(self, key: str, now: float) -> bool:
        """Forget the fields that were not repaired during the calm; return whether a fight has ended."""
        rounds = self._rounds.get(key, {})
        over = [culprit for culprit, last in rounds.items() if now - last.last >= self.calm]
        has_ended = any(rounds.pop(culprit).count >= ROUNDS for culprit in over)
        if not rounds:
            self._rounds.pop(key, None)
        return has_ended

    def forget(self, key: str) -> None:
        """Forget an object that is in no stack any more."""
        self._rounds.pop(key, None)

    def next_end(self, key: str) -> float | None:
        """Return when the first fight about an object would end; None if there is none."""
        rounds = self._rounds.get(key, {}).values()
        return min((seen.last + self.calm for seen in rounds if seen.count >= ROUNDS), default=None)

    def count(self) -> int:
        """Return the number of objects about which there is a fight."""
        return sum(any(seen.count >= ROUNDS for seen in rounds.values()) for rounds in self._rounds.values())

    def texts(self, key: str) -> list[str]:
        """Return one sentence for each fight about an object."""
        rounds = self._rounds.get(key, {})
        return [text(culprit) for culprit, seen in rounds.items() if seen.count >= ROUNDS]


def text(fight: Managed) -> str:
    """Return what a report says about a fight; it has no number, since each change of a report is stored."""
    return (
        f"{shortened(fight.manager)} changes {shown(fight.path)} again and again, and it is changed back: stop that "
        "manager, or leave the field to it with the annotation reside.io/yield"
    )
