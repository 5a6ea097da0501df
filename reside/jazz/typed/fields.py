"""The schema of a class: its fields, and the codecs of their annotations.

Annotations are read when a schema is first used, not when the class is created. So classes may refer to each other, and
to themselves, by name.
"""

import sys
import types
import typing
from collections.abc import Callable, Container
from dataclasses import dataclass
from datetime import datetime
from inspect import get_annotations
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin
from weakref import WeakValueDictionary

from pydantic import PydanticUserError

from reside.jazz.groups.group import Group
from reside.jazz.typed.codecs import Codec, DateCodec, JsonCodec, RefCodec, ScalarCodec
from reside.jazz.typed.errors import SchemaError
from reside.jazz.values.comap import RESERVED_KEYS
from reside.jazz.values.value import Value

if TYPE_CHECKING:
    from reside.jazz.typed.base import TypedValue


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final[Any] = _Missing()
"""Marker of a missing default and of an absent key."""


@dataclass(frozen=True)
class FieldSpec:
    """The arguments of `field`.

    Attributes:
        default: the value of a field that is not given; `MISSING` if there is none.
        default_factory: returns the default; None if there is none.
        key: the key on the wire; None for the field's name.
    """

    default: Any = MISSING
    default_factory: Callable[[], Any] | None = None
    key: str | None = None


def field(*, default: Any = MISSING, default_factory: Callable[[], Any] | None = None, key: str | None = None) -> Any:
    """Specify more about a field than its annotation does.

    Args:
        default: written if a new value does not give the field; read if the key is absent.
        default_factory: returns the default; use it for mutable defaults.
        key: the key on the wire, if it differs from the name: `created_at: datetime = field(key="createdAt")`.
    """
    return FieldSpec(default, default_factory, key)


@dataclass(frozen=True)
class Field:
    """A field of a schema.

    Attributes:
        label: names of class and field, for errors.
        name: name of the attribute.
        key: the key on the wire.
        codec: the codec of its type.
        spec: the arguments of `field`.
    """

    label: str
    name: str
    key: str
    codec: Codec
    spec: FieldSpec

    @property
    def is_required(self) -> bool:
        """Whether a new value must have this field."""
        return self.spec.default is MISSING and self.spec.default_factory is None

    @property
    def is_optional(self) -> bool:
        """Whether None means that the field is absent."""
        return self.spec.default is None

    @property
    def is_literal(self) -> bool:
        """Whether the field distinguishes the maps of a union."""
        return isinstance(self.codec, JsonCodec) and self.codec.is_literal

    def default(self) -> Any:
        """Return the default; `MISSING` if the field is required."""
        return self.spec.default_factory() if self.spec.default_factory is not None else self.spec.default


def fields_of(model: type["TypedValue"], specs: dict[str, FieldSpec]) -> dict[str, Field]:
    """Return the fields of a class, by name.

    Raises:
        SchemaError: an annotation can't be read, its type has no wire format, or a key is reserved.
    """
    hints = _hints(model, specs)
    found = {}
    for name, spec in specs.items():
        label = f"{model.__name__}.{name}"
        found[name] = Field(label, name, _key_of(spec, name, label), codec_of(hints[name], label), spec)
    return found


def _key_of(spec: FieldSpec, name: str, label: str) -> str:
    key = spec.key or name
    if key in RESERVED_KEYS:
        raise SchemaError(f"{label}: the key {key!r} is reserved by JavaScript clients; give the field another `key`")
    return key


def codec_of(annotation: Any, label: str) -> Codec:
    """Return the codec of an annotation.

    Args:
        annotation: the type of a field or an item, with all names resolved.
        label: the field's name in errors.

    Raises:
        SchemaError: the type has no wire format.
    """
    members, takes_none = _members(annotation)
    if annotation in (str, bool, int, float):
        return ScalarCodec(annotation)
    if members == (datetime,):
        return DateCodec(takes_none=takes_none)
    if members and all(_is_reference(member) for member in members):
        return _reference(members, takes_none=takes_none, label=label)
    nested = [part for part in _parts(annotation) if _is_reference(part)]
    if nested:
        raise SchemaError(
            f"{label}: {_name(annotation)} is plain JSON, which can't contain the Jazz value {nested[0].__name__}: "
            f"use {nested[0].__name__}, or ListOf, RecordOf or FeedOf of it"
        )
    try:
        return JsonCodec(annotation, _name(annotation))
    except PydanticUserError as error:
        raise SchemaError(f"{label}: {_name(annotation)} can't be represented in JSON: {error.message}") from error


def read_annotation(annotation: Any, model: type, label: str) -> Any:
    """Resolve an annotation that is, or contains, the name of a class.

    Args:
        annotation: the annotation.
        model: the class that contains it. Names are looked up in its module, and among the classes of the same
            function.
        label: the field's name in errors.

    Raises:
        SchemaError: it contains an unknown name.
    """
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    module = sys.modules.get(model.__module__)
    names = {**({} if module is None else vars(module)), **_siblings(model), model.__name__: model}
    try:
        read = typing.get_type_hints(holder, names, {}, include_extras=True)["it"]
    except NameError as error:
        raise SchemaError(
            f"{label}: the name {error.name} is not defined; import it, or define it in the same module"
        ) from None
    return _resolve_named_items(read, model, label)


def _resolve_named_items(annotation: Any, model: type, label: str) -> Any:
    """Resolve the names of item types in an annotation, such as `ListOf["Task"]`."""
    members, takes_none = _members(annotation)
    read = tuple(_resolve_item(member, model, label) for member in members)
    if all(one is member for one, member in zip(read, members, strict=True)):
        return annotation
    return Union[(*read, *([type(None)] if takes_none else ()))]


def _resolve_item(member: Any, model: type, label: str) -> Any:
    item, origin = getattr(member, "_item", None), getattr(member, "_origin", None)
    if origin is None or not isinstance(item, str):
        return member
    return origin[read_annotation(item, model, label)]


def _hints(model: type, names: Container[str]) -> dict[str, Any]:
    return {
        name: read_annotation(annotation, owner, f"{owner.__name__}.{name}")
        for owner in reversed(model.__mro__)
        for name, annotation in get_annotations(owner).items()
        if name in names
    }


def _members(annotation: Any) -> tuple[tuple[Any, ...], bool]:
    """Return the members of a union (or the only type) without None, and whether None is one of them."""
    union = get_origin(annotation) in (Union, types.UnionType)
    members = get_args(annotation) if union else (annotation,)
    rest = tuple(member for member in members if member is not type(None))
    return rest, len(rest) < len(members)


def _reference(targets: tuple[type, ...], *, takes_none: bool, label: str) -> RefCodec:
    name = " or ".join(target.__name__ for target in targets)
    if len(targets) > 1 and not all(hasattr(target, "_matches") for target in targets):
        raise SchemaError(
            f"{label}: a union may contain only maps, which are distinguished by their content, not {name}"
        )

    def choose(value: Any) -> type | None:
        if len(targets) == 1:
            return targets[0]
        return next((target for target in targets if target._matches(value)), None)  # type: ignore[attr-defined] # above

    return RefCodec(targets, takes_none=takes_none, name=name, choose=choose)


def _is_reference(member: Any) -> bool:
    return isinstance(member, type) and (issubclass(member, Group | Value) or hasattr(member, "_value_class"))


def _parts(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Literal:
        return []
    inner = get_args(annotation)
    return [annotation, *(part for argument in inner for part in _parts(argument))]


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)


_MODELS: "WeakValueDictionary[tuple[str, str, str], type]" = WeakValueDictionary()


def register(model: type) -> None:
    """Register a class for the annotations in its scope: Python can't look up names of classes in a function."""
    _MODELS[model.__module__, *_place(model)] = model


def _siblings(model: type) -> dict[str, type]:
    here = (model.__module__, _place(model)[0])
    return {name: known for (module, scope, name), known in _MODELS.items() if (module, scope) == here}


def _place(model: type) -> tuple[str, str]:
    scope, _, name = model.__qualname__.rpartition(".")
    return scope, name
