"""Deeply nested JSON, read and written without recursion: Python's own functions fail at a depth of a few hundred.

They are slow, so they are used only where the fast ones fail. `MAX_NESTING` limits the depth of everything that is
read and written, on every Python in the same way.
"""

import re
from collections.abc import Callable, Iterable
from json import JSONDecoder
from typing import Any, Final

from reside.jazz.errors import InvalidArgument
from reside.jazz.ids import Json

MAX_NESTING: Final = 1024
"""The depth that orjson reads. A JavaScript engine reads more, and writes a few thousand."""
_SPACE = re.compile(r"[ \t\n\r]*")
_SCALAR = re.compile(r'[^ \t\n\r\[\]{},:"]+')
_STRINGS: Final = JSONDecoder()
_INDENT: Final = "  "


def too_deep() -> InvalidArgument:
    """Return the error about a value that nests too deeply to be written."""
    what = f"it contains itself, or has more than {MAX_NESTING} levels"
    return InvalidArgument(f"not a JSON value: {what}; store a part of it in a value of its own")


def is_too_deep(value: Json, openings: int) -> bool:
    """Return whether a value has more than `MAX_NESTING` levels.

    Args:
        value: arrays and objects without cycles.
        openings: the number of arrays and objects, or more.
    """
    if openings <= MAX_NESTING:
        return False
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list | tuple)]:
        depth += 1
        if depth > MAX_NESTING:
            return True
        level = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]
    return False


def parse_deep(text: str, scalar: Callable[[str], Any]) -> Any:
    """Parse a JSON text.

    Args:
        text: the text.
        scalar: parses a number or a literal.

    Raises:
        ValueError: the text is not JSON, or has more than `MAX_NESTING` levels.
    """
    try:
        return _parse(text, scalar)
    except (IndexError, StopIteration):
        raise ValueError("the text ends too early") from None


def _parse(text: str, scalar: Callable[[str], Any]) -> Any:
    root: list[Any] = []
    stack: list[list[Any] | dict[str, Any]] = [root]
    keys: list[str] = [""]
    place = _skip(text, 0)
    while True:
        value, place, opened = _value(text, place, scalar)
        top = stack[-1]
        if isinstance(top, dict):
            top[keys[-1]] = value
        else:
            top.append(value)
        if opened:
            stack.append(value)
            keys.append("")
            if len(stack) - 1 > MAX_NESTING:
                raise ValueError("nested too deeply")
            place = _skip(text, place)
            if text[place] != _closing(value):
                keys[-1], place = _key(text, place) if isinstance(value, dict) else ("", place)
                continue
        while len(stack) > 1:
            place = _skip(text, place)
            top = stack[-1]
            if text[place] == ",":
                place = _skip(text, place + 1)
                keys[-1], place = _key(text, place) if isinstance(top, dict) else ("", place)
                break
            if text[place] != _closing(top):
                raise ValueError("an array or object is not closed")
            stack.pop()
            keys.pop()
            place += 1
        else:
            if _skip(text, place) != len(text):
                raise ValueError("more than one value")
            return root[0]


def _value(text: str, place: int, scalar: Callable[[str], Any]) -> tuple[Any, int, bool]:
    """Return the value that begins at a place, where its text ends, and whether it is only the beginning of it."""
    first = text[place]
    if first == "[":
        return [], place + 1, True
    if first == "{":
        return {}, place + 1, True
    if first == '"':
        value, end = _STRINGS.raw_decode(text, place)
        return value, end, False
    found = _SCALAR.match(text, place)
    if found is None:
        raise ValueError("a value is missing")
    return scalar(found.group()), found.end(), False


def _key(text: str, place: int) -> tuple[str, int]:
    """Return the key that begins at a place, and where its value begins."""
    if text[place] != '"':
        raise ValueError("a key is missing")
    key, place = _STRINGS.raw_decode(text, place)
    place = _skip(text, place)
    if text[place] != ":":
        raise ValueError("a colon is missing")
    return key, _skip(text, place + 1)


def _closing(container: Any) -> str:
    return "}" if isinstance(container, dict) else "]"


def _skip(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return place if found is None else found.end()


def write_deep(
    value: Json,
    *,
    scalar: Callable[[Any], str],
    key: Callable[[str], str],
    order: Callable[[dict[str, Any]], Iterable[str]] = iter,
    indented: bool = False,
) -> str:
    """Return the JSON text of a value.

    Args:
        value: the value.
        scalar: writes everything but arrays and objects.
        key: writes a key.
        order: returns the keys of an object in their order.
        indented: whether each item is on a line of its own.

    Raises:
        InvalidArgument: the value has more than `MAX_NESTING` levels, or contains itself.
    """
    colon = ": " if indented else ":"
    parts: list[str] = []
    todo: list[tuple[str, Any, int]] = [("", value, 0)]  # what precedes it, the value or its end, the depth
    while todo:
        before, item, depth = todo.pop()
        parts.append(before)
        if item is _END:
            continue
        if not isinstance(item, dict | list | tuple):
            parts.append(scalar(item))
            continue
        opening, closing = "{}" if isinstance(item, dict) else "[]"
        if not item:
            parts.append(opening + closing)
            continue
        if depth >= MAX_NESTING:
            raise too_deep()
        parts.append(opening)
        line, end = (f"\n{_INDENT * (depth + 1)}", f"\n{_INDENT * depth}") if indented else ("", "")
        if isinstance(item, dict):
            children = [(key(name) + colon, item[name]) for name in order(item)]
        else:
            children = [("", part) for part in item]
        todo.append((end + closing, _END, depth))
        for number in range(len(children) - 1, -1, -1):
            prefix, part = children[number]
            todo.append((("," if number else "") + line + prefix, part, depth + 1))
    return "".join(parts)


_END: Final = object()


def map_scalars(value: Json, function: Callable[[Json], Json]) -> Json:
    """Return a copy of a value in which a function replaced everything but arrays, objects and keys."""
    root: list[Any] = [value]
    todo: list[Any] = [root]
    while todo:
        container = todo.pop()
        for place, item in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if isinstance(item, dict | list | tuple):
                container[place] = copied = dict(item) if isinstance(item, dict) else list(item)
                todo.append(copied)
            else:
                container[place] = function(item)
    return root[0]
