"""The errors of the typed layer, in addition to those of `reside.jazz.errors`.

The tree::

    JazzError
    ├── SchemaMismatch       content, or a value to write, does not fit the schema
    ├── NotLoaded            a reference was read whose value is not loaded
    ├── SchemaError          a class declares an invalid field, or is used in an invalid way
    └── ValueNotFound
        └── ReferenceNotFound  a value that a field refers to is not on the server

Messages describe what was found, but never contain content, which may be secret.
"""
# ruff: noqa: N818 - names say what happened, as in `reside.jazz.errors`

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reside.jazz.errors import JazzError, ValueNotFound
from reside.jazz.values.owned import OwnedValue

if TYPE_CHECKING:
    from reside.jazz.values.value import Value


class SchemaError(JazzError):
    """A class declares a field that has no wire format, or is used in an invalid way."""


class UnknownField(SchemaError, AttributeError):
    """A model has no field of this name.

    Attributes:
        model: the class of the model.
        field: the name.
    """

    def __init__(self, model: str, field: str, fields: Iterable[str]) -> None:
        super().__init__(f"{model} has no field {field}; its fields: {', '.join(fields) or 'none'}")
        self.model = model
        self.field = field


class NotLoaded(JazzError):
    """A reference was read whose value was not loaded.

    Attributes:
        value: id of the value that is not loaded.
        field: the field that refers to it, such as `Task.project`.
    """

    def __init__(self, value: str, field: str) -> None:
        super().__init__(f"{field} refers to {value}, which is not loaded: {_resolving(field)}")
        self.value = value
        self.field = field


def _resolving(field: str) -> str:
    """Return how to load a reference: that of a field, or those of all items of a collection."""
    if field.endswith("]"):
        return "include `each` of the collection in `resolve`, or await its ensure(lambda items: items.each)"
    name = field.rpartition(".")[2]
    return f"include {name} in `resolve`, or await ensure(lambda value: value.{name})"


class SchemaMismatch(JazzError):
    """The content of a value, or a value to write, does not fit the schema.

    Attributes:
        field: the field, such as `Task.due`.
        value: id of the value; None if it was not created yet.
        group: id of the owning group; None if there is none.
        role: the account's role in that group; None if it has none.
        expected: description of what the schema expects.
        found: description of what was found.
    """

    def __init__(self, field: str, expected: str, found: str, value: "Value | None" = None) -> None:
        self.field, self.expected, self.found = field, expected, found
        self.value = None if value is None else value.id
        group = value.group if isinstance(value, OwnedValue) and value.has_owner else None
        self.group = None if group is None else group.id
        self.role = None if group is None else group.my_role
        where = "" if value is None else f" of {value.id}"
        rights = "" if group is None else f" (role in group {group.id}: {self.role or 'none'})"
        super().__init__(f"{field}{where} must be {expected}, found {found}{rights}")


class ReferenceNotFound(ValueNotFound):
    """A value that a field refers to is not on the server.

    Attributes:
        path: the reference, starting at the loaded value, such as `Task.project.tasks[3]`.
        referrer: id of the value that refers to it.
    """

    def __init__(self, error: ValueNotFound, path: str, referrer: str) -> None:
        super().__init__(error.value, f"{error.why}; {path} refers to it, in {referrer}")
        self.path = path
        self.referrer = referrer


def describe(raw: Any) -> str:
    """Describe a value without its content."""
    if raw is None or isinstance(raw, bool):
        return "null" if raw is None else "a boolean"
    if isinstance(raw, int | float):
        return "a number"
    if isinstance(raw, str):
        return f"a text of {len(raw)} characters"
    if isinstance(raw, Mapping | Sequence):
        return f"an object with {len(raw)} members" if isinstance(raw, Mapping) else f"an array of {len(raw)} items"
    return f"a Python {type(raw).__name__}"
