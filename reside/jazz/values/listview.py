"""The items of a list, built from its valid transactions in exactly the order of the JavaScript library.

Each insertion names the item that it goes after or before; a deletion names an insertion. Of the items that go after
the same item, the latest is first. The list is flattened by a walk over the trees of its two ends
(docs/jazz-protocol.md, section 7).

Invariants:
    The result depends only on the transactions, not on their order of arrival: nodes with the same transactions have
    the same list. After the first read, the flat list is updated by small changes, and
    rebuilt after large or unusual ones.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from reside.jazz.ids import Json
from reside.jazz.wire.merging import BRANCH, session_key
from reside.jazz.wire.session import Transaction

OpKey: TypeAlias = tuple[str, int, int]
"""An insertion: its session (with the branch that it comes from), index of the transaction, index of the change."""

_NEVER: Final = (0, "", 0)
_MAX_SEARCHES: Final = 32
"""Maximum number of searches for positions in one update. If more are needed, rebuilding the list is cheaper."""


@dataclass(slots=True, eq=False)
class Item:
    """One insertion.

    Attributes:
        key: identifies it.
        value: the inserted value.
        transaction: the transaction that inserted it.
        visible: False if its transaction lost a first-writer-wins race; other items may still refer to it.
        before: items inserted before it, ordered by time.
        after: items inserted after it, ordered by time.
    """

    key: OpKey
    value: Json
    transaction: Transaction
    visible: bool
    before: "list[Item] | None" = None
    after: "list[Item] | None" = None


class ListView:
    """The insertions and deletions of a list.

    Args:
        may_delete: returns whether a transaction with deletions counts.
    """

    def __init__(self, may_delete: Callable[[Transaction], bool]) -> None:
        self._may_delete = may_delete
        self._all: list[Transaction] = []
        self._items: dict[OpKey, Item] = {}
        self._deleted: set[OpKey] = set()
        self._start: list[Item] = []
        self._end: list[Item] = []
        self._latest = _NEVER
        self._flat: list[Item] | None = None
        self._texts: Counter[str] | None = None
        self._hint = 0
        self._searches = 0

    def reset(self, transactions: Sequence[Transaction], losers: frozenset[Transaction]) -> None:
        """Rebuild the view. Items inserted by losers of a first-writer-wins race remain as invisible anchors."""
        self._all = list(transactions)
        self._items, self._deleted = {}, set()
        self._start, self._end = [], []
        self._flat = None
        ordered = sorted(transactions, key=_when)
        self._take(ordered, losers)
        self._latest = ordered[-1].when if ordered else _NEVER

    def extend(self, transactions: Sequence[Transaction]) -> None:
        """Add transactions; rebuild the view if one is older than those present."""
        ordered = sorted(transactions, key=_when)
        self._all.extend(transactions)
        if not ordered:
            return
        if ordered[0].when < self._latest:
            self.reset(self._all, frozenset())
            return
        self._searches = 0
        self._take(ordered, frozenset())
        self._latest = ordered[-1].when

    def items(self) -> list[Item]:
        """Return the visible items in order. The view owns the list: do not modify it."""
        if self._flat is None:
            self._flat = [item for root in (*self._start, *self._end) for item in _walk(root) if self._is_visible(item)]
            self._texts = None
        return self._flat

    def has_text(self, text: str) -> bool:
        """Return whether a visible item is this text; from the second call on without a walk over the items."""
        items = self.items()
        if self._texts is None:
            self._texts = Counter(item.value for item in items if isinstance(item.value, str))
        return self._texts[text] > 0

    def _is_visible(self, item: Item) -> bool:
        return item.visible and item.key not in self._deleted

    def _take(self, ordered: Iterable[Transaction], losers: frozenset[Transaction]) -> None:
        for item in ordered:
            changes = item.changes or ()
            loses = item in losers
            if not loses and deletes_items(item) and not self._may_delete(item):
                continue
            for place, change in enumerate(changes):
                if isinstance(change, dict):
                    self._apply(item, (*item.name, place), change, visible=not loses)

    def _apply(self, item: Transaction, key: OpKey, change: Mapping[str, Json], *, visible: bool) -> None:
        op = change.get("op")
        if op == "del":
            target = op_key(change.get("insertion"))
            if target is not None:
                self._deleted.add(target)
                self._hide(target)
        elif op in ("app", "pre") and key not in self._items:
            inserted = Item(key, change.get("value"), item, visible)
            self._link(inserted, change.get("after" if op == "app" else "before"), after=op == "app")
            self._items[key] = inserted

    def _link(self, item: Item, reference: Json, *, after: bool) -> None:
        """Insert an item into the trees, unless its neighbour is unknown."""
        if reference == ("start" if after else "end"):
            (self._start if after else self._end).append(item)
            self._show_last(item, is_last=not after or not self._end)
            return
        anchor_key = op_key(reference)
        anchor = None if anchor_key is None else self._items.get(anchor_key)
        if anchor is None:
            return
        self._show_beside(item, anchor if after else _head(anchor), after=after)
        if after:
            anchor.after = anchor.after or []
            anchor.after.append(item)
        else:
            anchor.before = anchor.before or []
            anchor.before.append(item)

    def _show_last(self, item: Item, *, is_last: bool) -> None:
        if not is_last:
            self._flat = None
        elif self._flat is not None and self._is_visible(item):
            self._flat.append(item)
            self._count(item, 1)

    def _show_beside(self, item: Item, neighbour: Item, *, after: bool) -> None:
        if self._flat is None or not self._is_visible(item):
            return
        if not self._is_visible(neighbour):
            self._flat = None  # the flat list does not contain the position
            return
        place = self._find(neighbour)
        if place is not None and self._flat is not None:
            self._flat.insert(place + after, item)
            self._count(item, 1)

    def _hide(self, key: OpKey) -> None:
        item = self._items.get(key)
        if self._flat is not None and item is not None and item.visible:
            place = self._find(item)
            if place is not None:
                del self._flat[place]
                self._count(item, -1)

    def _count(self, item: Item, difference: int) -> None:
        if self._texts is not None and isinstance(item.value, str):
            self._texts[item.value] += difference

    def _find(self, item: Item) -> int | None:
        """Return the position of an item in the flat list. It is usually near the last one found."""
        flat = self._flat
        if flat is None:
            return None
        for place in (self._hint, self._hint + 1, len(flat) - 1):
            if 0 <= place < len(flat) and flat[place] is item:
                self._hint = place
                return place
        self._searches += 1
        if self._searches > _MAX_SEARCHES:
            self._flat = None
        elif item in flat:  # otherwise it, or an item next to it, has an unknown neighbour
            self._hint = flat.index(item)
            return self._hint
        return None


def op_id(key: OpKey) -> dict[str, Json]:
    """Return the wire form of an insertion's key."""
    session, index, place = key
    session, _, branch = session.partition(BRANCH)
    return {"sessionID": session, "txIndex": index, "changeIdx": place, **({"branch": branch} if branch else {})}


def op_key(raw: Json) -> OpKey | None:
    """Return the key of the insertion that a change refers to; None if the reference is malformed."""
    if not isinstance(raw, dict):
        return None
    session, index, place = raw.get("sessionID"), raw.get("txIndex"), raw.get("changeIdx")
    if not isinstance(session, str) or type(index) is not int or type(place) is not int:
        return None
    return session_key(session, raw.get("branch")), index, place


def _walk(root: Item) -> Iterator[Item]:
    """Yield the items of a tree in list order: items before it, the item, items after it; the latest sibling first."""
    todo = [root]
    opened: set[OpKey] = set()
    while todo:
        item = todo[-1]
        if item.before and item.key not in opened:
            opened.add(item.key)
            todo.extend(item.before)
        else:
            todo.pop()
            yield item
            if item.after:
                todo.extend(item.after)


def _head(item: Item) -> Item:
    """Return the first item, in list order, of an item and everything inserted before it."""
    while item.before:
        item = item.before[-1]
    return item


def deletes_items(transaction: Transaction) -> bool:
    """Return whether a transaction deletes an item."""
    return any(map(_is_deletion, transaction.changes or ()))


def _is_deletion(change: Json) -> bool:
    return isinstance(change, dict) and change.get("op") == "del"


def _when(transaction: Transaction) -> tuple[int, str, int]:
    return transaction.when
