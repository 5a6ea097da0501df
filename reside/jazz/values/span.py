"""The first and the last change of a value."""

from collections.abc import Sequence
from typing import Final

from reside.jazz.wire.session import Transaction

_NONE: Final[frozenset[Transaction]] = frozenset()


class Span:
    """The first and the last of a value's transactions that count, by their authors' clocks.

    Attributes:
        first: the first one; None if none counts.
        last: the last one that changes something: readers may write transactions without changes.
    """

    def __init__(self) -> None:
        self.first: Transaction | None = None
        self.last: Transaction | None = None
        self._valid: Sequence[Transaction] = ()
        self._losers = _NONE
        self._seen = 0

    def update(self, valid: Sequence[Transaction], losers: frozenset[Transaction]) -> None:
        """Process the transactions that were added since the last call, or all if the list is another one."""
        if valid is not self._valid or losers is not self._losers:
            self._valid, self._losers, self._seen = valid, losers, 0
            self.first = self.last = None
        for index in range(self._seen, len(valid)):
            item = valid[index]
            if item in losers:
                continue
            if self.first is None or item.when < self.first.when:
                self.first = item
            if (item.is_private or item.changes) and (self.last is None or item.when > self.last.when):
                self.last = item
        self._seen = len(valid)
