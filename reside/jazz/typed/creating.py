"""Creation of values from drafts: children before the values that refer to them.

Each value gets the owner that its class sets. By default, a child gets a new group that extends the owner of the value
that refers to it, as in jazz-tools. A child of a unique value with the same owner is unique as well: its name is its
parent's name with the field appended.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from reside.jazz.groups.account import Account
from reside.jazz.groups.group import Group
from reside.jazz.ids import Json
from reside.jazz.typed.codecs import Codec, Misfit, RefCodec
from reside.jazz.typed.errors import SchemaError, SchemaMismatch
from reside.jazz.values.host import Host
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.value import Value
from reside.jazz.wire.header import Unique, ValueType, unique_header

Inline: TypeAlias = Literal["extend", "same", "new", "reader", "writer", "manager", "admin"]
"""Who owns a draft that is created with the value that refers to it: a new group that extends the owner of that value,
with the same roles (`extend`) or one role for all; the same owner (`same`); or a separate new group (`new`)."""

K = TypeVar("K", bound=OwnedValue)


@dataclass(frozen=True)
class WriteTarget:
    """Where to write drafts and values.

    Attributes:
        owner: the group that owns the written value.
        unique: the unique name of the value during its creation; None for a value that is not unique.
        value: the value if it exists, for errors.
    """

    owner: Group
    unique: Unique | None = None
    value: Value | None = None

    @property
    def host(self) -> Host:
        """The node."""
        return self.owner._host

    def encode(self, codec: Codec, value: Any, label: str, key: str) -> Json:
        """Return the JSON of a value; create the value first if it is a draft.

        Args:
            codec: the codec of the value.
            value: the value.
            label: the field's name in errors.
            key: the key or index, for the unique names of children.

        Raises:
            SchemaMismatch: it does not fit.
        """
        check(codec, value, label, self.value)
        if isinstance(codec, RefCodec) and is_draft(value):
            owner = _owner_of_child(value, self.owner)
            unique = None if self.unique is None or owner is not self.owner else _child_of(self.unique, key)
            create(value, owner, unique)
        return codec.encode(value)

    def unique_value(self, value_type: ValueType, kind: type[K], changes: Sequence[Json]) -> K:
        """Return the value with the unique name. If it has no valid content in memory, write its first content."""
        header = unique_header(value_type, self.owner.id, self.unique or "")
        value: K = self.host.creator.unique(header, kind, changes)
        return value


class Draft(Protocol):
    """The draft of a typed value; implemented by `TypedValue`."""

    @property
    def inline(self) -> Inline:
        """Who owns the value if it is created with the value that refers to it."""

    @property
    def is_draft(self) -> bool:
        """Whether this is a draft, whose value does not exist yet."""

    def _write_draft(self, target: WriteTarget) -> OwnedValue:
        """Write the draft."""

    def _bind(self, value: OwnedValue) -> None:
        """Turn this object into a view of a value."""


def create(draft: Draft, owner: Group, unique: Unique | None = None) -> None:
    """Create the value of a draft and turn the draft into a view.

    Args:
        draft: the draft.
        owner: the owner of the value.
        unique: the unique name of the value; None for a value that is not unique.
    """
    if not draft.is_draft:
        raise SchemaError(f"{draft!r} was created before: each draft is created once")
    draft._bind(draft._write_draft(WriteTarget(owner, unique)))


def check(codec: Codec, value: Any, label: str, container: Value | None = None) -> None:
    """Check that a value fits, before anything is written.

    Raises:
        SchemaMismatch: it does not.
    """
    try:
        if isinstance(codec, RefCodec) and is_draft(value):
            codec.adopt(value)
        else:
            codec.encode(value)
    except Misfit as misfit:
        raise SchemaMismatch(label, codec.expected, misfit.found, container) from None


def is_draft(value: Any) -> bool:
    """Return whether an object is a draft of a typed value."""
    return hasattr(type(value), "_value_class") and bool(value.is_draft)


def _owner_of_child(draft: Draft, owner: Group) -> Group:
    if draft.inline == "same":
        return owner
    if draft.inline == "new" or isinstance(owner, Account):
        group: Group = owner._host.create_group()
        return group
    return owner.create_child(draft.inline)


def _child_of(unique: Unique, key: str) -> Unique:
    if isinstance(unique, str):
        return f"{unique}@@{key}"
    path = unique.get("_field")
    return {**unique, "_field": f"{path}/{key}" if path else key}
