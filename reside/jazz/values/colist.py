"""CoList: an ordered list that several writers may change concurrently (docs/jazz-protocol.md, section 7).

`listview` computes the order. This module has the base class of lists and texts, and the list of JSON values.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple, overload

from reside.jazz.ids import Json, SessionId
from reside.jazz.memory.covalue import Core
from reside.jazz.rules.group_state import ADMINS, GroupState
from reside.jazz.values.diff import Patch, patches
from reside.jazz.values.host import Host
from reside.jazz.values.listview import Item, ListView, deletes_items, op_id
from reside.jazz.values.owned import OwnedValue, author
from reside.jazz.values.tracking import Tracker, inserted_texts
from reside.jazz.wire.encoding import parse_json, stable_json
from reside.jazz.wire.session import Transaction


class ListEdit(NamedTuple):
    """One visible item.

    Attributes:
        by: the account or agent that inserted it.
        at: the author's clock, ms since the epoch.
        session: the session that it was inserted in.
        value: the item.
    """

    by: str
    at: int
    session: SessionId
    value: Json


class Ordered(OwnedValue):
    """The base class of lists and texts: values with ordered items."""

    def __init__(self, host: Host, core: Core) -> None:
        self._view = ListView(self._may_delete)
        super().__init__(host, core, self._view)

    def __len__(self) -> int:
        return len(self._items())

    def refusals(self) -> list[tuple[SessionId, int, str | None]]:
        """See `OwnedValue`; where deletion is restricted, transactions with deletions need admins or managers."""
        found = super().refusals()
        header = self._core.header
        if header is None or not header.restrict_deletion:
            return found
        refused = {
            (item.session, item.index)
            for item in self._core.transactions
            if deletes_items(item) and not self._may_delete(item)
        }
        why = "it deletes items, which only admins and managers may do here"
        return [
            (session, index, why if reason is None and (session, index) in refused else reason)
            for session, index, reason in found
        ]

    def edits(self) -> list[ListEdit]:
        """Return all items with their authors."""
        return [
            ListEdit(author(item.transaction), item.transaction.at, item.transaction.session, item.value)
            for item in self._items()
        ]

    def clear(self) -> None:
        """Remove all items, in one transaction.

        Raises:
            NotPermitted: this account may not write here, or deletion is restricted to admins and managers.
        """
        self._change([Patch(0, len(self._items()), ())])

    def _items(self, at: int | None = None) -> list[Item]:
        if at is not None:
            return self._content.show_until(at, ListView(self._may_delete)).items()
        if self._core.stale:
            self._refresh()
        return self._view.items()

    def _change(self, found: Sequence[Patch[Json]]) -> None:
        """Write patches in one transaction: first all deletions, then all insertions."""
        items = self._items()
        deleted = [{"op": "del", "insertion": op_id(item.key)} for patch in found for item in _removed(items, patch)]
        if deleted:
            self._check_may_delete()
        inserted = [change for patch in found for change in _inserting(items, patch.start, patch.inserted)]
        if deleted or inserted:
            self._write(deleted + inserted)

    def _check_may_delete(self) -> None:
        header = self._core.header
        if header is not None and header.restrict_deletion and self.group.my_role not in ADMINS:
            raise self._refuse("delete from", "admin or manager")

    def _may_delete(self, transaction: Transaction) -> bool:
        header = self._core.header
        if header is None or not header.restrict_deletion or header.owner is None:
            return True
        owner = self._host.store.group_state(header.owner)
        return isinstance(owner, GroupState) and owner.role_of(transaction.author, transaction.made_at) in ADMINS


class CoList(Ordered, Sequence[Json]):
    """A list of JSON values: a `Sequence`. Two lists are equal only if they are the same object."""

    kind: ClassVar[str] = "list"

    @overload
    def __getitem__(self, index: int) -> Json: ...

    @overload
    def __getitem__(self, index: slice) -> list[Json]: ...

    def __getitem__(self, index: int | slice) -> Json:
        found = self._items()[index]
        return [item.value for item in found] if isinstance(found, list) else found.value

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, str):
            return value in self.as_list()
        self._items()
        return self._view.has_text(value)

    def __iter__(self) -> Iterator[Json]:
        return iter(self.as_list())

    def as_list(self, *, at: int | None = None) -> list[Json]:
        """Return all items. The caller owns the list, but its items are shared: do not modify them.

        Args:
            at: a time in ms since the epoch: return what was written until then, by the authors' clocks.
        """
        return [item.value for item in self._items(at)]

    def track(self) -> Tracker:
        """Return what tells the texts that are inserted from now on; its first `take` returns all (`CoMap.track`)."""
        return Tracker(
            self._content, lambda: [text for text in self.as_list() if isinstance(text, str)], inserted_texts
        )

    def append(self, value: Json) -> None:
        """Add an item at the end.

        Raises:
            NotPermitted: this account may not write here.
            InvalidArgument: the value is not JSON.
        """
        self.extend([value])

    def extend(self, values: Iterable[Json]) -> None:
        """Add items at the end, in one transaction.

        Raises:
            NotPermitted: this account may not write here.
            InvalidArgument: a value is not JSON.
        """
        count = len(self)
        self._change([Patch(count, count, list(values))])

    def insert(self, index: int, value: Json) -> None:
        """Insert an item before the item at `index`. The index has the meaning that it has in `list.insert`.

        Raises:
            NotPermitted: this account may not write here.
            InvalidArgument: the value is not JSON.
        """
        start, _, _ = slice(index, None).indices(len(self))
        self._change([Patch(start, start, [value])])

    def remove(self, index: int) -> None:
        """Remove the item at an index.

        Raises:
            NotPermitted: this account may not write here, or deletion is restricted to admins and managers.
            IndexError: there is no such item.
        """
        place = self._place(index)
        self._change([Patch(place, place + 1, ())])

    def replace(self, index: int, value: Json) -> None:
        """Replace the item at an index, in one transaction.

        Raises:
            NotPermitted: this account may not write here, or deletion is restricted to admins and managers.
            InvalidArgument: the value is not JSON.
            IndexError: there is no such item.
        """
        key = self._items()[index].key
        self._check_may_delete()
        self._write([{"op": "app", "value": value, "after": op_id(key)}, {"op": "del", "insertion": op_id(key)}])

    def move(self, index: int, to: int) -> None:
        """Move an item to the index `to`, in one transaction: `insert(to, pop(index))`.

        The protocol has no moves: an item that two writers move concurrently is in the list twice.

        Raises:
            NotPermitted: this account may not write here, or deletion is restricted to admins and managers.
            IndexError: there is no such item.
        """
        place, items = self._place(index), self._items()
        target, _, _ = slice(to, None).indices(len(items) - 1)
        if target == place:
            return
        anchor = target if target < place else target + 1
        self._check_may_delete()
        deletion = {"op": "del", "insertion": op_id(items[place].key)}
        self._write([*_inserting(items, anchor, [items[place].value]), deletion])

    def splice(self, start: int, stop: int, values: Iterable[Json] = ()) -> None:
        """Replace the items from `start` to before `stop`, in one transaction: `items[start:stop] = values`.

        Raises:
            NotPermitted: this account may not write here, or deletion is restricted to admins and managers.
            InvalidArgument: a value is not JSON.
        """
        first, last, _ = slice(start, stop).indices(len(self))
        self._change([Patch(first, max(first, last), list(values))])

    def apply(self, values: Iterable[Json]) -> None:
        """Make the list equal to `values` with the fewest changes, in one transaction. Equal items are kept.

        Raises:
            NotPermitted: this account may not write here, or deletion is restricted to admins and managers.
            InvalidArgument: a value is not JSON.
        """
        present = [stable_json(value) for value in self.as_list()]
        texts = patches(present, [stable_json(value) for value in values])
        self._change([Patch(item.start, item.stop, [parse_json(text) for text in item.inserted]) for item in texts])

    def _place(self, index: int) -> int:
        return range(len(self))[index]


def appending(values: Iterable[Json]) -> list[dict[str, Json]]:
    """Return the changes that add values to an empty list."""
    return [{"op": "app", "value": value, "after": "start"} for value in values]


def _inserting(items: Sequence[Item], place: int, values: Sequence[Json]) -> list[dict[str, Json]]:
    """Return the changes that insert values in their order before the item at a position, or at the end.

    Of siblings, the latest is first: values inserted next to the same item are therefore written in reverse.
    """
    if not items:
        return appending(values)
    if place == 0:
        key = op_id(items[0].key)
        return [{"op": "pre", "value": value, "before": key} for value in reversed(values)]
    key = op_id(items[place - 1].key)
    return [{"op": "app", "value": value, "after": key} for value in reversed(values)]


def _removed(items: Sequence[Item], patch: Patch[Json]) -> Sequence[Item]:
    return items[patch.start : patch.stop]
