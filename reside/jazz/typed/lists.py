"""Lists with an item type, like `co.list` in jazz-tools."""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, TypeVar, overload

from reside.jazz.ids import Json
from reside.jazz.typed.collection import Collection
from reside.jazz.typed.creating import WriteTarget, check
from reside.jazz.typed.errors import NotLoaded
from reside.jazz.typed.resolving import EACH
from reside.jazz.values.colist import CoList, appending
from reside.jazz.values.owned import OwnedValue
from reside.jazz.wire.header import ValueType

T = TypeVar("T")


class ListOf(Collection[T], Sequence[T]):
    """A list of JSON values, dates or references: a `Sequence`. `ListOf([...])` is a draft."""

    _value_class: ClassVar[type[OwnedValue]] = CoList
    _value_type: ClassVar[ValueType] = "colist"

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._draft: list[T] = list(items)
        if self._item is not None:
            self._check_draft()

    def _check_draft(self) -> None:
        """See `Collection`."""
        self._check(self._draft)

    def __len__(self) -> int:
        return len(self._draft) if self._value is None else len(self._value_raw)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items())

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return self._items()[index]
        return self._draft[index] if self._value is None else self._read(self._value_raw[index], index)

    def __delitem__(self, index: int) -> None:
        if self._value is None:
            del self._draft[index]
        else:
            self._value_raw.remove(index)

    def append(self, item: T) -> None:
        """Add an item at the end. If it is a draft, it is created.

        Raises:
            NotPermitted: this account may not write here.
            SchemaMismatch: it does not fit.
        """
        self.extend([item])

    def extend(self, items: Iterable[T]) -> None:
        """Add items at the end, in one transaction. Drafts are created.

        Raises:
            NotPermitted: this account may not write here.
            SchemaMismatch: an item does not fit; nothing is written.
        """
        added = list(items)
        self._check(added)
        if self._value is None:
            self._draft += added
        else:
            self._value_raw.extend(self._encode(added))

    def insert(self, index: int, item: T) -> None:
        """Insert an item before the item at `index`. The index has the meaning that it has in `list.insert`.

        Raises:
            NotPermitted: this account may not write here.
            SchemaMismatch: it does not fit.
        """
        self._check([item])
        if self._value is None:
            self._draft.insert(index, item)
        else:
            self._value_raw.insert(index, self._encode([item])[0])

    def loaded(self) -> list[T]:
        """Return the items that are loaded; some references may be unavailable (`tolerate`)."""
        if self._value is None:
            return list(self._draft)
        found = []
        for place, raw in enumerate(self._value_raw):
            try:
                found.append(self._read(raw, place))
            except NotLoaded:
                continue
        return found

    def ids(self) -> list[str | None]:
        """Return the ids in a list of references, loaded or not."""
        return [raw if isinstance(raw, str) else None for raw in self._value_raw]

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """See `TypedValue`."""
        return [(f"[{place}]", raw) for place, raw in enumerate(self._value_raw)] if name == EACH else []

    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """See `TypedValue`."""
        items = [
            target.encode(self._item_codec(), item, f"{type(self).__name__}[{place}]", str(place))
            for place, item in enumerate(self._draft)
        ]
        if target.unique is None:
            return target.owner.create_list(items)
        return target.unique_value("colist", CoList, appending(items))

    @property
    def _value_raw(self) -> CoList:
        raw: CoList = self.raw
        return raw

    def _items(self) -> list[T]:
        if self._value is None:
            return list(self._draft)
        return [self._read(raw, place) for place, raw in enumerate(self._value_raw)]

    def _check(self, items: list[T]) -> None:
        for item in items:
            check(self._item_codec(), item, f"{type(self).__name__}[…]", self._value)

    def _encode(self, items: list[T]) -> list[Json]:
        self._check_may_write(f"add to the {type(self).__name__}")
        target = WriteTarget(self.group, value=self._value)
        return [target.encode(self._item_codec(), item, f"{type(self).__name__}[…]", "") for item in items]
