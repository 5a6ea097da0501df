"""Feeds with an item type, like `co.feed` in jazz-tools."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from reside.jazz.ids import AccountId, Json
from reside.jazz.typed.collection import Collection
from reside.jazz.typed.creating import WriteTarget, check
from reside.jazz.typed.resolving import EACH
from reside.jazz.values.cofeed import CoFeed, FeedEntry
from reside.jazz.values.owned import OwnedValue
from reside.jazz.wire.dates import date_of
from reside.jazz.wire.header import ValueType

T = TypeVar("T")


@dataclass(frozen=True)
class FeedItem(Generic[T]):
    """One item of a feed.

    Attributes:
        by: the account or agent that pushed it.
        at: the author's clock; limited to the last date that `datetime` supports.
        raw: the item as on the wire.
    """

    by: str
    at: datetime
    raw: Json
    _feed: "FeedOf[T]"

    @property
    def value(self) -> T:
        """The decoded item.

        Raises:
            SchemaMismatch: it does not fit.
            NotLoaded: it is a reference to a value that is not loaded.
        """
        return self._feed._read(self.raw, f"by {self.by}")


class FeedOf(Collection[T]):
    """A feed of JSON values, dates or references. `FeedOf([...])` is a draft."""

    _value_class: ClassVar[type[OwnedValue]] = CoFeed
    _value_type: ClassVar[ValueType] = "costream"

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._draft: list[T] = list(items)
        if self._item is not None:
            self._check_draft()

    def _check_draft(self) -> None:
        """See `Collection`."""
        for item in self._draft:
            check(self._item_codec(), item, f"{type(self).__name__}[…]", self._value)

    def __len__(self) -> int:
        return len(self._draft) if self._value is None else len(self._entries())

    def __iter__(self) -> Iterator[FeedItem[T]]:
        return iter(self.items())

    def items(self) -> list[FeedItem[T]]:
        """Return all items, ordered by their authors' clocks."""
        return [self._item_of(entry) for entry in self._entries()]

    def latest(self) -> FeedItem[T] | None:
        """Return the latest item; None if the feed is empty."""
        entries = self._entries()
        return self._item_of(entries[-1]) if entries else None

    def by_account(self) -> dict[AccountId, FeedItem[T]]:
        """Return the latest item of each account, like `perAccount` in jazz-tools."""
        return {AccountId(entry.by): self._item_of(entry) for entry in self._entries()}

    def push(self, item: T) -> None:
        """Add an item. If it is a draft, it is created.

        Raises:
            NotPermitted: this account may not write here.
            SchemaMismatch: it does not fit.
        """
        check(self._item_codec(), item, f"{type(self).__name__}[…]", self._value)
        if self._value is None:
            self._draft.append(item)
            return
        self._check_may_write(f"push to the {type(self).__name__}")
        target = WriteTarget(self.group, value=self._value)
        raw: CoFeed = self.raw
        raw.push(target.encode(self._item_codec(), item, f"{type(self).__name__}[…]", ""))

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """See `TypedValue`."""
        return [(f"[by {entry.by}]", entry.value) for entry in self._entries()] if name == EACH else []

    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """See `TypedValue`."""
        items = [
            target.encode(self._item_codec(), item, f"{type(self).__name__}[{place}]", str(place))
            for place, item in enumerate(self._draft)
        ]
        if target.unique is not None:
            return target.unique_value("costream", CoFeed, items)
        made = target.owner.create_feed()
        for item in items:
            made.push(item)
        return made

    def _entries(self) -> list[FeedEntry]:
        raw: Any = self.raw
        entries: list[FeedEntry] = raw.entries()
        return entries

    def _item_of(self, entry: FeedEntry) -> FeedItem[T]:
        return FeedItem(entry.by, date_of(entry.at), entry.value, self)
