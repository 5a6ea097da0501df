"""The part of its sources that a branch shows: of its source, of the source's source, and so on.

Invariants:
    Headers are immutable, so a branch always has the same sources; they may be loaded later than the branch.
    What is written to a source after the start of the branch costs only a look at the new transactions.
"""

from typing import Generic, Protocol, Self, TypeVar

from reside.jazz.values.branching import Counts, before
from reside.jazz.wire.session import Transaction


class Level(Protocol):
    """The content of a branch or a source.

    Attributes:
        valid: the transactions that count, in the order of arrival. The list grows, or is replaced by another.
        losers: those of them that their meta makes invalid.
        start: where a branch starts in its source; None if no transaction states it, or it is not a branch.
    """

    valid: list[Transaction]
    losers: frozenset[Transaction]
    start: Counts | None

    def source(self) -> Self | None:
        """Return the content of the source, if it is a branch whose source is in memory."""


LevelType = TypeVar("LevelType", bound=Level)


class Sources(Generic[LevelType]):
    """The sources of one branch."""

    def __init__(self, branch: LevelType) -> None:
        self._branch = branch
        self._parts: list[_Part] = []

    def levels(self) -> list[LevelType]:
        """Return the content of each source that is in memory, the branch's own first."""
        found: list[LevelType] = []
        level = self._branch.source()
        while level is not None:
            found.append(level)
            level = level.source()
        return found

    def update(self) -> bool:
        """Read the sources again; return whether the branch shows something else than before."""
        changed, level, count = False, self._branch, 0
        for source in self.levels():
            if level.start is None:
                break
            if count == len(self._parts):
                self._parts.append(_Part())
            changed = self._parts[count].update(source, level.start) or changed
            level, count = source, count + 1
        changed = changed or count < len(self._parts)
        del self._parts[count:]
        return changed

    def transactions(self) -> list[Transaction]:
        """Return what the branch shows of its sources, the oldest source first."""
        return [item for part in reversed(self._parts) for item in part.shown]

    def losers(self) -> frozenset[Transaction]:
        """Return the transactions of the sources that their meta makes invalid."""
        return frozenset().union(*(part.losers for part in self._parts))


class _Part:
    """The shown part of one source."""

    def __init__(self) -> None:
        self.shown: list[Transaction] = []
        self.losers: frozenset[Transaction] = frozenset()
        self._start: Counts | None = None
        self._valid: list[Transaction] = []
        self._seen = 0

    def update(self, source: Level, start: Counts) -> bool:
        """Read the source again; return whether something else is shown."""
        grown = source.valid is self._valid and start == self._start and source.losers == self.losers
        if not grown:
            self._valid, self._start, self._seen = source.valid, start, 0
        fresh = before(start, source.valid[self._seen :] if self._seen else source.valid)
        changed = bool(fresh) if grown else fresh != self.shown or source.losers != self.losers
        self.shown = self.shown + fresh if grown else fresh
        self.losers, self._seen = source.losers, len(source.valid)
        return changed
