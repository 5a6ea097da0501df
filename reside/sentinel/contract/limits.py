"""The limits of what accounts may declare. Pure.

Whoever may declare anything can write any JSON into Jazz: text that no file can hold, a list in a list a thousand
times, numbers that Kubernetes does not have. It is refused here, before anything else reads it. The check itself
neither recurses deeper than is allowed nor raises another error, whatever it gets.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from reside.common.texts import is_utf8, shown
from reside.model.errors import InvalidInput
from reside.model.stacks import OBJECTS, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_OBJECTS: Final = 500
"""Objects of one stack. Each stack is one operation of the engine, which holds all of it in memory."""
LARGEST_OBJECT: Final = 1024 * 1024
"""Bytes of an object's canonical JSON. Kubernetes refuses larger ones: etcd's requests are limited to 1.5 MiB."""
DEEPEST: Final = 64
"""How deep lists and maps of an object may be nested. The deepest objects of the allowed kinds have about 20 levels."""
_LARGEST_INTEGER: Final = 2**63


def check_limits(members: Mapping[str, Any]) -> None:
    """Check the members of a desired stack's map, whatever they are.

    Raises:
        InvalidInput: a limit is exceeded; the message names the limit, and the object by its place in the list.
    """
    for member, value in members.items():
        if member != OBJECTS:
            _check(value, f"member {shown(member)}")
    objects = members.get(OBJECTS)
    if not isinstance(objects, list | tuple):
        _check(objects, f"member {OBJECTS}")
        return
    if len(objects) > MOST_OBJECTS:
        raise InvalidInput(f"the stack has {len(objects)} objects: split it, {MOST_OBJECTS} are allowed")
    for place, obj in enumerate(objects):
        _check(obj, f"object {place}")
        size = len(canonical(obj).encode())
        if size > LARGEST_OBJECT:
            raise InvalidInput(f"object {place} of the stack has {size} bytes: {LARGEST_OBJECT} are allowed")


def _check(value: Any, what: str) -> None:
    """Check depth, texts, numbers and lists of a JSON value."""
    level, depth, is_mixed = [value], 0, False
    while level:
        if depth > DEEPEST:
            raise InvalidInput(f"{what} of the stack is nested deeper than {DEEPEST} levels")
        for each in level:
            _check_one(each, what)
            is_mixed = is_mixed or _is_mixed(each)
        level = [inner for each in level for inner in _parts(each)]
        depth += 1
    if is_mixed:
        raise InvalidInput(
            f"{what} of the stack has a list of maps, lists or nulls together with other elements, at "
            f"{shown(_path_to_mixed(value))}: all elements must be of one type, as in every field of Kubernetes"
        )


def _is_mixed(value: Any) -> bool:
    """Return whether a value is a list of which some elements are maps, lists or nulls, and others are not.

    Pulumi's Kubernetes provider takes the type of the first element for that of all. Its process ends if a map or list
    is expected, or a null is first, and another element follows.
    """
    return isinstance(value, list | tuple) and len({_form(each) for each in value}) > 1


def _form(value: Any) -> type[Any]:
    """Return the type of a value of JSON; texts, numbers and booleans have one."""
    if isinstance(value, dict):
        return dict
    if isinstance(value, list | tuple):
        return list
    return type(None) if value is None else object


def _path_to_mixed(value: Any) -> str:
    """Return where the first such list is in a value that is not nested too deep; empty if there is none."""
    if _is_mixed(value):
        return "."
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, inner in pairs:
        if path := _path_to_mixed(inner):
            return f".{key}{path}".removesuffix(".")
    return ""


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return list(value) if isinstance(value, list | tuple) else []


def _check_one(value: Any, what: str) -> None:
    if isinstance(value, str) and not is_utf8(value):
        raise InvalidInput(f"{what} of the stack has text with half of a surrogate pair, which UTF-8 can't encode")
    if isinstance(value, int) and not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER:
        raise InvalidInput(f"{what} of the stack has a number of more than 64 bits")
    if isinstance(value, float) and not isfinite(value):
        raise InvalidInput(f"{what} of the stack has a number beyond the largest double")
