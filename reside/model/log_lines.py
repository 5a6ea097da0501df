"""Lines of a container's log with their times, and the cursor up to which a reader has them. Pure.

Kubernetes finds lines by the second only, so lines are read again from the second of the last one that a reader has.
Those that it has are left out. A cursor is the time of that line and how many lines up to it have the same time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic_core import to_json

from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ?", re.ASCII)
_CURSOR: Final = re.compile(r"([0-9]{1,19})/([0-9]{1,9})")
_PER_SECOND: Final = 1_000_000_000


class Cursor(NamedTuple):
    """The last line that a reader has.

    Attributes:
        at: its time, in ns since the epoch; 0 if the reader has none.
        nth: the number of lines with this time, up to it.
    """

    at: int = 0
    nth: int = 0

    def __str__(self) -> str:
        return f"{self.at}/{self.nth}"

    @property
    def since(self) -> str | None:
        """The second of the line, as Kubernetes takes it; None if there is no line."""
        if not self.at:
            return None
        return datetime.fromtimestamp(self.at // _PER_SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_cursor(text: str) -> Cursor:
    """Parse a cursor.

    Raises:
        InvalidInput: it is none.
    """
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{text[:40]!r} is not a position in a log: update the command or the Sentinel")
    return Cursor(int(found[1]), int(found[2]))


def lines_after(cursor: Cursor, text: str) -> tuple[str, Cursor]:
    """Return the lines after a cursor without their times, and the cursor of the last one.

    Args:
        cursor: what the reader has.
        text: lines with times, as Kubernetes serves them. A line without a time belongs to the one before it; without
            one it is left out, since no cursor could tell that the reader has it. So is a line without an end, which
            comes with a later text.
    """
    kept: list[str] = []
    is_new, last = False, cursor
    seen = Cursor()
    for at, line in _stamped(text):
        if at is not None:
            seen = Cursor(at, seen.nth + 1 if at == seen.at else 1)
            is_new = seen > cursor
            last = max(last, seen)
        if is_new:
            kept.append(line)
    return "".join(kept), last


def has_times(text: str) -> bool:
    """Return whether a line of a text begins with a time."""
    return any(at is not None for at, _ in _stamped(f"{text}\n"))


def _stamped(text: str) -> Iterator[tuple[int | None, str]]:
    """Yield the time of each line, in ns since the epoch or None, and the line without it."""
    for line in _whole_lines(text):
        found = _STAMP.match(line)
        at = None if found is None else _nanoseconds(found)
        yield at, line if found is None or at is None else line[found.end() :]


def _whole_lines(text: str) -> Iterable[str]:
    """Return the lines of a text with their ends, which are line feeds; without the last one if it has no end."""
    return re.findall(r"[^\n]*\n", text)


def _nanoseconds(found: re.Match[str]) -> int | None:
    """Return a time in ns since the epoch; None if there is no such time."""
    try:
        second = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00"))
    except ValueError:
        return None
    return int(second.timestamp()) * _PER_SECOND + int((found[2] or "").ljust(9, "0"))


def end_within(text: str, size: int) -> str:
    """Return the end of a text that takes at most `size` bytes of JSON; it begins with a whole line if one fits.

    A control character takes six bytes of JSON, and one that was not UTF-8 three.
    """
    if _json_size(text) <= size:
        return text
    low, high = 0, len(text)  # from `high` on it fits
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _json_size(text[middle:]) <= size else (middle, high)
    end = text[high:]
    return end.partition("\n")[2] or end


def _json_size(text: str) -> int:
    return len(to_json(text))
