"""The types that methods and permissions of a contract may have: what all languages can represent alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping as PyMapping

Scalar = str | int | float | bool | None


class Missing:
    """The default of a member that has none."""


MISSING: Final = Missing()


@dataclass(frozen=True)
class Anything:
    """Any JSON value."""


@dataclass(frozen=True)
class Null:
    """Null."""


@dataclass(frozen=True)
class Flag:
    """A boolean."""


@dataclass(frozen=True)
class Text:
    """A string; lengths count Unicode code points."""

    least: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class Number:
    """A number, or an integer that every language reads alike."""

    whole: bool
    minimum: int | float | None = None
    maximum: int | float | None = None
    above: int | float | None = None
    below: int | float | None = None


@dataclass(frozen=True)
class Choice:
    """One of some strings."""

    values: tuple[str, ...]


@dataclass(frozen=True)
class Items:
    """A list."""

    of: Kind
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class Mapping:
    """An object with any members, all of one type."""

    of: Kind


@dataclass(frozen=True)
class Union:
    """A value of one of several types; the first that fits counts."""

    options: tuple[Kind, ...]


@dataclass(frozen=True)
class Named:
    """A type that has been defined before, by its name."""

    name: str


@dataclass(frozen=True)
class Member:
    """A member of an object; one that is not required may have a default."""

    name: str
    kind: Kind
    required: bool
    default: Scalar | Missing = MISSING


@dataclass(frozen=True)
class Record:
    """An object with known members; `closed`: it has no others. Otherwise others are ignored."""

    members: tuple[Member, ...]
    closed: bool = False


Kind = Anything | Null | Flag | Text | Number | Choice | Items | Mapping | Union | Named
"""What a type is made of; records occur by name only."""


@dataclass(frozen=True)
class Definition:
    """A named type. It uses only those that are defined before it."""

    name: str
    kind: Kind | Record


def is_nullable(kind: Kind | Record, defined: PyMapping[str, Kind | Record]) -> bool:
    """Return whether null is a value of the type, so that an optional member may be null."""
    if isinstance(kind, Named):
        return is_nullable(defined[kind.name], defined)
    if isinstance(kind, Union):
        return any(is_nullable(each, defined) for each in kind.options)
    return isinstance(kind, Null | Anything)


def unaliased(kind: Kind, defined: PyMapping[str, Kind | Record]) -> Kind:
    """Return a type whose names are those of records only: other named types are replaced by what they stand for."""
    if isinstance(kind, Named):
        found = defined[kind.name]
        return kind if isinstance(found, Record) else unaliased(found, defined)
    if isinstance(kind, Items | Mapping):
        return replace(kind, of=unaliased(kind.of, defined))
    if isinstance(kind, Union):
        return Union(tuple(unaliased(each, defined) for each in kind.options))
    return kind


def union(options: Iterable[Kind], defined: PyMapping[str, Kind | Record]) -> Kind:
    """Return the type of a value that has one of several types: each once, whatever its name, and null last.

    Python merges equal types of a union, and what is left need not be a union.
    """
    found: dict[Kind, Kind] = {}
    for each in options:
        plain = unaliased(each, defined)
        for part in plain.options if isinstance(plain, Union) else (plain,):
            found.setdefault(part, each if part == plain else part)
    if Anything() in found:
        return Anything()
    null = found.pop(Null(), None)
    parts = (*found.values(), *([Null()] if null is not None else []))
    return parts[0] if len(parts) == 1 else Union(parts)
