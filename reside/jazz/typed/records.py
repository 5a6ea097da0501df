"""Maps with arbitrary keys and one type of values, like `co.record` in jazz-tools."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, TypeVar

from reside.jazz.ids import Json
from reside.jazz.typed.collection import Collection
from reside.jazz.typed.creating import WriteTarget, check
from reside.jazz.typed.resolving import EACH
from reside.jazz.values.comap import CoMap, assigning, checked_key
from reside.jazz.values.owned import OwnedValue
from reside.jazz.wire.header import ValueType

T = TypeVar("T")


class RecordOf(Collection[T], Mapping[str, T]):
    """A map from texts to JSON values, dates or references: a `Mapping`. `RecordOf({...})` is a draft."""

    _value_class: ClassVar[type[OwnedValue]] = CoMap
    _value_type: ClassVar[ValueType] = "comap"
    _has_keys: ClassVar[bool] = True

    def __init__(self, values: Mapping[str, T] | None = None) -> None:
        self._draft: dict[str, T] = dict(values or {})
        if self._item is not None:
            self._check_draft()

    def _check_draft(self) -> None:
        """See `Collection`."""
        self._check(self._draft)

    def __len__(self) -> int:
        return len(self._draft) if self._value is None else len(self._map)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._draft)) if self._value is None else iter(self._map)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (key in self._draft if self._value is None else key in self._map)

    def __getitem__(self, key: str) -> T:
        return self._draft[key] if self._value is None else self._read(self._map[key], key)

    def __setitem__(self, key: str, value: T) -> None:
        self.update({key: value})

    def __delitem__(self, key: str) -> None:
        if self._value is None:
            del self._draft[key]
        else:
            self._map.delete(key)

    def update(self, values: Mapping[str, T]) -> None:
        """Assign several keys in one transaction. Drafts are created.

        Raises:
            NotPermitted: this account may not write here.
            SchemaMismatch: a value does not fit; nothing is written.
        """
        self._check(values)
        if self._value is None:
            self._draft.update(values)
            return
        self._check_may_write(f"set {', '.join(values)} of the {type(self).__name__}")
        target = WriteTarget(self.group, value=self._value)
        self._map.update({key: self._encode(target, key, value) for key, value in values.items()})

    def _refer(self, name: str) -> Iterable[tuple[str, Json]]:
        """See `TypedValue`."""
        if name == EACH:
            return [(f"[{key!r}]", raw) for key, raw in self._map.items()]
        return [(f"[{name!r}]", self._map.get(name))]

    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """See `TypedValue`."""
        init = {key: self._encode(target, key, value) for key, value in self._draft.items()}
        if target.unique is None:
            return target.owner.create_map(init)
        return target.unique_value("comap", CoMap, assigning(init))

    @property
    def _map(self) -> CoMap:
        raw: CoMap = self.raw
        return raw

    def _check(self, values: Mapping[str, T]) -> None:
        for key, value in values.items():
            checked_key(key)
            check(self._item_codec(), value, f"{type(self).__name__}[{key!r}]", self._value)

    def _encode(self, target: WriteTarget, key: str, value: T) -> Json:
        return target.encode(self._item_codec(), value, f"{type(self).__name__}[{key!r}]", key)
