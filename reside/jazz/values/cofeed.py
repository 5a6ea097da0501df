"""CoFeed: an append-only stream with any number of writers (docs/jazz-protocol.md, section 7)."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, overload

from reside.jazz.ids import Json, SessionId
from reside.jazz.memory.covalue import Core
from reside.jazz.values.host import Host
from reside.jazz.values.owned import OwnedValue, author
from reside.jazz.wire.session import Transaction


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One item.

    Attributes:
        by: the account or agent that pushed it.
        at: the author's clock, ms since the epoch.
        session: the session that it was pushed in.
        value: the item.
        index: index of its transaction in the session.
    """

    by: str
    at: int
    session: SessionId
    value: Json
    index: int = 0


class FeedView:
    """The items, ordered by time."""

    def __init__(self) -> None:
        self.items: list[FeedEntry] = []
        self._whens: list[tuple[int, str, int]] = []

    def reset(self, transactions: Sequence[Transaction], losers: frozenset[Transaction]) -> None:
        """Rebuild the view."""
        self.items, self._whens = [], []
        self.extend([item for item in transactions if item not in losers])

    def extend(self, transactions: Sequence[Transaction]) -> None:
        """Add transactions in their order of arrival."""
        whens = self._whens
        for item in transactions:
            when = item.when
            for value in item.changes or ():
                entry = FeedEntry(author(item), item.at, item.session, value, item.index)
                if not whens or whens[-1] <= when:
                    self.items.append(entry)
                    whens.append(when)
                else:
                    place = bisect_right(whens, when)
                    self.items.insert(place, entry)
                    whens.insert(place, when)


class CoFeed(OwnedValue, Sequence[FeedEntry]):
    """A feed of JSON values: a `Sequence` of its items. Two feeds are equal only if they are the same object."""

    kind: ClassVar[str] = "feed"

    def __init__(self, host: Host, core: Core) -> None:
        self._view = FeedView()
        super().__init__(host, core, self._view)

    def __len__(self) -> int:
        return len(self._items())

    @overload
    def __getitem__(self, index: int) -> FeedEntry: ...

    @overload
    def __getitem__(self, index: slice) -> list[FeedEntry]: ...

    def __getitem__(self, index: int | slice) -> FeedEntry | list[FeedEntry]:
        return self._items()[index]

    def __iter__(self) -> Iterator[FeedEntry]:
        return iter(self.entries())

    def entries(self, *, at: int | None = None) -> list[FeedEntry]:
        """Return all items, ordered by their authors' clocks.

        Args:
            at: a time in ms since the epoch: return what was written until then, by the authors' clocks.
        """
        return list(self._items() if at is None else self._content.show_until(at, FeedView()).items)

    def push(self, value: Json) -> None:
        """Add an item.

        Raises:
            NotPermitted: this account may not write here.
            InvalidArgument: the value is not JSON.
        """
        self._write([value])

    def _items(self) -> list[FeedEntry]:
        if self._core.stale:
            self._refresh()
        return self._view.items
