"""CoList: an ordered list that several writers may change at once, in exactly the JavaScript library's order.

Every insertion names the item it goes after or before. Items that go after the same item stand latest first; the list
is flattened from its two ends by a walk over these trees (jazz-protocol.md §7).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from .covalue import Core
from .group_state import ADMINS, GroupState
from .host import Host
from .ids import Json, SessionId
from .owned import OwnedValue, author
from .session import Transaction

OpKey: TypeAlias = tuple[str, int, int]
"""An insertion: its session, transaction and change."""


_NEVER = (0, "")


@dataclass(frozen=True, slots=True)
class ListEdit:
    """One visible item: its value, who inserted it, and when (ms)."""

    by: str
    at: int
    session: SessionId
    value: Json


@dataclass(slots=True, eq=False)
class _Node:
    key: OpKey
    value: Json
    transaction: Transaction
    visible: bool
    before: "list[_Node]" = field(default_factory=list)
    after: "list[_Node]" = field(default_factory=list)


class ListView:
    """The insertions and deletions of a list.

    Args:
        may_delete: Whether a transaction with deletions counts.
    """

    def __init__(self, may_delete: Callable[[Transaction], bool]) -> None:
        self._may_delete = may_delete
        self._all: list[Transaction] = []
        self._nodes: dict[OpKey, _Node] = {}
        self._deleted: set[OpKey] = set()
        self._start: list[_Node] = []
        self._end: list[_Node] = []
        self._latest = _NEVER
        self._flat: list[_Node] | None = None

    def reset(self, transactions: Sequence[Transaction], losers: frozenset[int]) -> None:
        """Builds all anew; what losers of a first-writer-wins race inserted stays as invisible anchors."""
        self._all = list(transactions)
        self._clear()
        ordered = sorted(transactions, key=lambda item: item.when)
        self._take(ordered, losers)
        self._latest = ordered[-1].when if ordered else _NEVER

    def extend(self, transactions: Sequence[Transaction]) -> None:
        """Takes in more transactions; builds all anew if one is older than what is there."""
        ordered = sorted(transactions, key=lambda item: item.when)
        self._all.extend(transactions)
        if ordered and ordered[0].when < self._latest:
            self.reset(self._all, frozenset())
            return
        self._take(ordered, frozenset())
        self._latest = ordered[-1].when if ordered else self._latest

    def items(self) -> list[_Node]:
        """The visible items in order."""
        if self._flat is None:
            self._flat = [node for root in (*self._start, *self._end) for node in _walk(root) if self._shows(node)]
        return self._flat

    def _clear(self) -> None:
        self._nodes, self._deleted = {}, set()
        self._start, self._end = [], []
        self._latest = _NEVER
        self._flat = None

    def _shows(self, node: _Node) -> bool:
        return node.visible and node.key not in self._deleted

    def _take(self, ordered: Iterable[Transaction], losers: frozenset[int]) -> None:
        self._flat = None
        for item in ordered:
            changes = [change for change in item.changes or () if isinstance(change, dict)]
            loses = item.order in losers
            if not loses and any(change.get("op") == "del" for change in changes) and not self._may_delete(item):
                continue
            for place, change in enumerate(item.changes or ()):
                if isinstance(change, dict):
                    self._apply(item, (item.session, item.index, place), change, visible=not loses)

    def _apply(self, item: Transaction, key: OpKey, change: Mapping[str, Json], *, visible: bool) -> None:
        op = change.get("op")
        if op == "del":
            target = _op_key(change.get("insertion"))
            if target is not None:
                self._deleted.add(target)
            return
        if op not in ("app", "pre") or key in self._nodes:
            return
        node = _Node(key, change.get("value"), item, visible)
        reference = change.get("after" if op == "app" else "before")
        if op == "app" and reference == "start":
            self._start.append(node)
        elif op == "pre" and reference == "end":
            self._end.append(node)
        else:
            reference_key = _op_key(reference)
            anchor = None if reference_key is None else self._nodes.get(reference_key)
            if anchor is not None:
                (anchor.after if op == "app" else anchor.before).append(node)
        self._nodes[key] = node


class CoList(OwnedValue):
    """A list of JSON values."""

    kind: ClassVar[str] = "list"

    def __init__(self, node: Host, core: Core) -> None:
        self._view = ListView(self._may_delete)
        super().__init__(node, core, self._view)

    def __len__(self) -> int:
        return len(self._items())

    def __getitem__(self, index: int) -> Json:
        return self._items()[index].value

    def __iter__(self) -> Iterator[Json]:
        return iter(self.as_list())

    def as_list(self) -> list[Json]:
        """All values; the list is the caller's, the values in it are shared."""
        return [item.value for item in self._items()]

    def edits(self) -> list[ListEdit]:
        """All items with their authors."""
        return [
            ListEdit(author(item.transaction), item.transaction.made_at, item.transaction.session, item.value)
            for item in self._items()
        ]

    def append(self, value: Json) -> None:
        """Adds an item at the end.

        Raises:
            NotPermitted: This account may not write here.
            InvalidContent: The value is not JSON.
        """
        self.extend([value])

    def extend(self, values: Iterable[Json]) -> None:
        """Adds items at the end, in one transaction.

        Raises:
            NotPermitted: This account may not write here.
            InvalidContent: A value is not JSON.
        """
        added = list(values)
        if not added:
            return
        items = self._items()
        after: Json = _op_id(items[-1].key) if items else "start"
        changes = [{"op": "app", "value": value, "after": after} for value in added]
        if items:
            changes.reverse()
        self._write(changes)

    def insert(self, index: int, value: Json) -> None:
        """Inserts an item before the one at `index`, with the meaning of `list.insert`.

        Raises:
            NotPermitted: This account may not write here.
            InvalidContent: The value is not JSON.
        """
        items = self._items()
        index = max(0, index + len(items)) if index < 0 else index
        if index >= len(items):
            self.append(value)
        else:
            self._write([{"op": "pre", "value": value, "before": _op_id(items[index].key)}])

    def remove(self, index: int) -> None:
        """Removes the item at an index.

        Raises:
            NotPermitted: This account may not write here, or deletion is restricted to admins and managers.
            IndexError: There is no such item.
        """
        item = self._items()[index]
        header = self._core.header
        if header is not None and header.restrict_deletion and self.group.my_role not in ADMINS:
            raise self._refuse("delete from", "admin or manager")
        self._write([{"op": "del", "insertion": _op_id(item.key)}])

    def _items(self) -> list[_Node]:
        if self._core.stale:
            self.refresh()
        return self._view.items()

    def _may_delete(self, transaction: Transaction) -> bool:
        header = self._core.header
        if header is None or not header.restrict_deletion or header.owner is None:
            return True
        owner = self._node.store.group_state(header.owner)
        return isinstance(owner, GroupState) and owner.role_of(transaction.author, transaction.made_at) in ADMINS


def _walk(root: _Node) -> Iterator[_Node]:
    """A tree in list order: what goes before a node, the node, what goes after it; of siblings the latest first."""
    todo = [root]
    opened: set[OpKey] = set()
    while todo:
        node = todo[-1]
        if node.before and node.key not in opened:
            opened.add(node.key)
            todo.extend(node.before)
        else:
            todo.pop()
            yield node
            todo.extend(node.after)


def _op_id(key: OpKey) -> dict[str, Json]:
    session, index, place = key
    return {"sessionID": session, "txIndex": index, "changeIdx": place}


def _op_key(raw: Json) -> OpKey | None:
    if not isinstance(raw, dict):
        return None
    session, index, place = raw.get("sessionID"), raw.get("txIndex"), raw.get("changeIdx")
    if not isinstance(session, str) or type(index) is not int or type(place) is not int:
        return None
    return session, index, place
