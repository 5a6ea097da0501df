"""CoMap: a map in which the last writer of each key wins (docs/jazz-protocol.md, section 7)."""

from bisect import insort_right
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, TypeAlias

from reside.jazz.errors import InvalidArgument
from reside.jazz.ids import Json, SessionId
from reside.jazz.memory.covalue import Core
from reside.jazz.values.host import Host
from reside.jazz.values.owned import OwnedValue, author
from reside.jazz.values.tracking import Tracker, assigned_keys
from reside.jazz.wire.encoding import stable_json
from reside.jazz.wire.session import Transaction

RESERVED_KEYS: Final = frozenset(
    {
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
    }
)
"""The members of JavaScript's `Object.prototype`. JavaScript clients (cojson 0.20.19) can't load a map with such a
key."""

_Entry: TypeAlias = tuple[Transaction, bool, Json]
"""One assignment: its transaction, whether it removes the key, the value."""


class Edit(NamedTuple):
    """One assignment of a key.

    Attributes:
        by: the account or agent that made it.
        at: the author's clock, ms since the epoch.
        session: the session that it was made in.
        value: the assigned value; None if the key was deleted.
        deleted: whether the key was deleted.
    """

    by: str
    at: int
    session: SessionId
    value: Json = None
    deleted: bool = False


@dataclass(slots=True)
class MapView:
    """The assignments of each key, ordered by time."""

    entries: dict[str, list[_Entry]]

    def reset(self, transactions: Sequence[Transaction], losers: frozenset[Transaction]) -> None:
        """Rebuild the view."""
        self.entries = {}
        self.extend([item for item in transactions if item not in losers] if losers else transactions)

    def extend(self, transactions: Sequence[Transaction]) -> None:
        """Add transactions in their order of arrival."""
        known = self.entries
        for item in transactions:
            for change in item.changes or ():
                if not isinstance(change, dict):
                    continue
                key, op = change.get("key"), change.get("op")
                if not isinstance(key, str):
                    continue
                # As in JavaScript, every operation but `del` assigns. In JSON, an undefined value is a missing member;
                # readers treat it as an absent key.
                entry = (item, op == "del" or "value" not in change, change.get("value"))
                entries = known.get(key)
                if entries is None:
                    known[key] = [entry]
                elif entries[-1][0].when <= item.when:
                    entries.append(entry)
                else:
                    insort_right(entries, entry, key=_when)


class CoMap(OwnedValue, Mapping[str, Json]):
    """A map of JSON values: a `Mapping` of the keys that have a value.

    Two maps are equal only if they are the same object, since both change; compare `as_dict()`.
    """

    kind: ClassVar[str] = "map"
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __init__(self, host: Host, core: Core) -> None:
        self._view = MapView({})
        super().__init__(host, core, self._view)

    def get(self, key: str, default: Json = None) -> Json:
        """Return the value of a key. Other readers share it: do not modify it."""
        entries = self._entries().get(key)
        return default if not entries or entries[-1][1] else entries[-1][2]

    def __getitem__(self, key: str) -> Json:
        entries = self._entries().get(key)
        if not entries or entries[-1][1]:
            raise KeyError(key)
        return entries[-1][2]

    def has(self, key: str, value: Json) -> bool:
        """Return whether a key has this value; unlike in Python, 1 and True are different.

        Raises:
            InvalidArgument: the value is not JSON.
        """
        return key in self and stable_json(self[key]) == stable_json(value)

    def __contains__(self, key: object) -> bool:
        entries = self._entries().get(key) if isinstance(key, str) else None
        return bool(entries) and entries is not None and not entries[-1][1]

    def __len__(self) -> int:
        return sum(1 for entries in self._entries().values() if not entries[-1][1])

    def __iter__(self) -> Iterator[str]:
        return (key for key, entries in list(self._entries().items()) if not entries[-1][1])

    def items(self) -> ItemsView[str, Json]:
        """Return the keys and their values at this time."""
        return self.as_dict().items()

    def values(self) -> ValuesView[Json]:
        """Return the values of all keys at this time."""
        return self.as_dict().values()

    def as_dict(self, *, at: int | None = None) -> dict[str, Json]:
        """Return all keys and values. The caller owns the dict, but its values are shared: do not modify them.

        Args:
            at: a time in ms since the epoch: return what was written until then, by the authors' clocks.
        """
        found = self._entries() if at is None else self._content.show_until(at, MapView({})).entries
        return {key: entries[-1][2] for key, entries in found.items() if not entries[-1][1]}

    def set(self, key: str, value: Json) -> None:
        """Assign a key.

        Raises:
            NotPermitted: this account may not write here.
            InvalidArgument: the value is not JSON, or the key is not a text or one of `RESERVED_KEYS`.
        """
        self.update({key: value})

    def update(self, values: Mapping[str, Json], *, unset: Iterable[str] = ()) -> None:
        """Assign several keys in one transaction: readers see all of the assignments or none.

        Args:
            values: the keys and their new values.
            unset: keys to set to JavaScript's `undefined`, which a reader treats as absent.

        Raises:
            NotPermitted: this account may not write here.
            InvalidArgument: a value is not JSON, or a key is not a text or one of `RESERVED_KEYS`.
        """
        changes = assigning(values)
        changes += [{"op": "set", "key": checked_key(key)} for key in unset]
        if changes:
            self._write(changes)

    def delete(self, key: str) -> None:
        """Remove a key.

        Raises:
            NotPermitted: this account may not write here.
            InvalidArgument: the key is one of `RESERVED_KEYS`.
        """
        self._write([{"op": "del", "key": checked_key(key)}])

    def edit(self, key: str) -> Edit | None:
        """Return the current assignment of a key; None if the key was never assigned."""
        entries = self._entries().get(key)
        return _edit(entries[-1]) if entries else None

    def history(self, key: str) -> list[Edit]:
        """Return all valid assignments of a key, oldest first."""
        return [_edit(entry) for entry in self._entries().get(key, ())]

    def track(self) -> Tracker:
        """Return what tells the keys that change from now on; its first `take` returns all keys.

        A reader of a large map takes the changed keys after each change, and reads only these. A branch reports all
        keys each time.
        """
        return Tracker(self._content, self._entries, assigned_keys)

    def _entries(self) -> dict[str, list[_Entry]]:
        if self._core.stale:
            self._content.refresh()
        return self._view.entries


def assigning(values: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Return the changes that assign these keys.

    Raises:
        InvalidArgument: a key is not a text, or one of `RESERVED_KEYS`.
    """
    return [{"op": "set", "key": checked_key(key), "value": value} for key, value in values.items()]


def checked_key(key: object) -> str:
    """Return a key that all clients can read.

    Raises:
        InvalidArgument: it is not a text, or one of `RESERVED_KEYS`.
    """
    if not isinstance(key, str):
        raise InvalidArgument(f"the keys of a map must be texts, found {key!r}")
    if key in RESERVED_KEYS:
        raise InvalidArgument(
            f"the key {key!r} is reserved: JavaScript clients can't load a map that has it; rename it"
        )
    return key


def _when(entry: _Entry) -> tuple[int, str, int]:
    return entry[0].when


def _edit(entry: _Entry) -> Edit:
    transaction, deleted, value = entry
    return Edit(author(transaction), transaction.at, transaction.session, value, deleted)
