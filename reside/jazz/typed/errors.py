"""What can go wrong in the typed layer, besides what can go wrong below it.

The tree::

    JazzError
    ├── SchemaMismatch       content, or a value to write, does not fit the schema
    ├── NotLoaded            a reference was read whose value is not here yet
    ├── SchemaError          a class declares something that can't be
    └── ValueNotFound
        └── ReferenceNotFound  a value that a field refers to is not on the server

Messages say what was found, never its content: that may be a secret.
"""
# ruff: noqa: N818 - names say what happened, as in `reside.jazz.errors`

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reside.jazz.errors import JazzError, ValueNotFound
from reside.jazz.values.owned import OwnedValue

if TYPE_CHECKING:
    from reside.jazz.values.value import Value


class SchemaError(JazzError):
    """A class declares a field, or is used in a way, that has no meaning on the wire."""


class NotLoaded(JazzError):
    """A reference was read whose value was not loaded.

    Attributes:
        value: Id of the value that is not here.
        field: The field that refers to it, as `Task.project`.
    """

    def __init__(self, value: str, field: str) -> None:
        name = field.rpartition(".")[2].partition("[")[0]
        super().__init__(f"{field} refers to {value}, which is not loaded: name {name} in `resolve`")
        self.value = value
        self.field = field


class SchemaMismatch(JazzError):
    """Content of a value does not fit the schema, or a value to write does not.

    Attributes:
        field: The field, as `Task.due`.
        value: Id of the value; None for one that was not created yet.
        group: Id of the owning group, None if there is none.
        role: The account's role in that group, None for none.
        expected: What the schema says, in words.
        found: What was found, in words.
    """

    def __init__(self, field: str, expected: str, found: str, value: "Value | None" = None) -> None:
        self.field, self.expected, self.found = field, expected, found
        self.value = None if value is None else value.id
        group = value.group if isinstance(value, OwnedValue) else None
        self.group = None if group is None else group.id
        self.role = None if group is None else group.my_role
        where = "" if value is None else f" of {value.id}"
        rights = "" if group is None else f" (role in group {group.id}: {self.role or 'none'})"
        super().__init__(f"{field}{where} must be {expected}, found {found}{rights}")


class ReferenceNotFound(ValueNotFound):
    """A value that a field refers to is not on the server.

    Attributes:
        path: Where it is referred to, from the value that was loaded, as `Task.project.tasks[3]`.
        referrer: Id of the value that refers to it.
    """

    def __init__(self, error: ValueNotFound, path: str, referrer: str) -> None:
        super().__init__(error.value, f"{error.why}; {path} refers to it, in {referrer}")
        self.path = path
        self.referrer = referrer


def describe(raw: Any) -> str:
    """What a value is, without telling its content."""
    if raw is None or isinstance(raw, bool):
        return "null" if raw is None else "a boolean"
    if isinstance(raw, int | float):
        return "a number"
    if isinstance(raw, str):
        return f"a text of {len(raw)} characters"
    if isinstance(raw, Mapping | Sequence):
        return f"an object with {len(raw)} members" if isinstance(raw, Mapping) else f"an array of {len(raw)} items"
    return f"a Python {type(raw).__name__}"
