"""Lists for people and for programs: the one form of every `list` command.

Without an option a list fits a terminal of 80 columns: digests are short, times are ages, and the last column folds.
`--wide` shows all columns in full. Programs take JSON or YAML, which have all members, or the names alone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from reside.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.table import Table

Record = dict[str, Any]
DIGEST_DIGITS: Final = 12
"""Hexadecimal digits of a short digest, as container tools show it."""
ID_LETTERS: Final = 16
"""Letters of a short Jazz id."""
_STYLES: Final = {
    **dict.fromkeys(("running", "completed", "approved"), "green"),
    **dict.fromkeys(("starting", "stopping", "degraded", "validating", "requires-approval", "pending"), "yellow"),
    **dict.fromkeys(("error", "invalid", "rejected", "revoked"), "red"),
}
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


class Format(StrEnum):
    """Format of a list."""

    table = "table"
    json = "json"
    yaml = "yaml"
    name = "name"


@dataclass(frozen=True)
class ListOptions:
    """Options of every command that lists."""

    format_: Annotated[Format, typer.Option("--output", "-o", help="Format of the list.")] = Format.table
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, in full.")] = False


@dataclass(frozen=True)
class Column:
    """A column of a list.

    Args:
        name: member of the record; also the header.
        short: what to show of the member in 80 columns, and always of a truth value; None: all of it.
        header: another header than the member's name.
        wide: whether only `--wide` shows the column.
        style: how a terminal shows the member, as Rich names styles.
    """

    name: str
    short: Callable[[Any], str] | None = None
    header: str | None = None
    wide: bool = False
    style: Callable[[Any], str] | None = None

    def shown(self, record: Record, *, wide: bool) -> Text:
        """Return the cell of a record, printable and in its style."""
        value = self.cell(record, wide=wide)
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        text = "" if value is None else output.printable(str(value))
        return Text(text, self.style(record.get(self.name)) if self.style else "")

    def cell(self, record: Record, *, wide: bool) -> Any:
        """Return what a row shows; None for nothing."""
        value = record.get(self.name)
        if value in (None, "") or self.short is None:
            return value
        return value if wide and not isinstance(value, bool) else self.short(value)


def show(
    records: Sequence[Record], columns: Sequence[Column], options: ListOptions, name: str = "name", empty: str = ""
) -> None:
    """Print records.

    Args:
        records: what to list, with all members.
        columns: the columns of the table, the one that folds last.
        options: the options of the command.
        name: member that names a record in other commands.
        empty: what to say on standard error if there is nothing to list.
    """
    if options.format_ is Format.json:
        output.print_json(records)
    elif options.format_ is Format.yaml:
        output.print_yaml(records)
    elif options.format_ is Format.name:
        for record in records:
            output.line(str(record[name]))
    elif records or not empty:
        output.console.print(as_table(records, columns, wide=options.wide))
    else:
        output.errors.print(empty, markup=False, highlight=False)


def as_table(records: Iterable[Record], columns: Sequence[Column], *, wide: bool = False) -> Table:
    """Return records as a table."""
    shown = [column for column in columns if wide or not column.wide]
    cells = ([column.shown(record, wide=wide) for column in shown] for record in records)
    return output.table([(column.header or column.name).upper() for column in shown], cells)


def status_style(status: Any) -> str:
    """Return the style of a status: what needs a person is red, what is on its way is yellow."""
    return _STYLES.get(str(status), "")


def short_digest(digest: str) -> str:
    """Return the first digits of a digest: `3f2c1a9b0d41` of `sha256:3f2c1a9b0d41…`."""
    return digest.removeprefix("sha256:")[:DIGEST_DIGITS]


def short_image(image: str) -> str:
    """Return the last part of an image's name, with the first digits of its digest: `greeter@3f2c1a9b0d41`."""
    name, separator, digest = image.partition("@sha256:")
    return name.rpartition("/")[2] + (f"@{short_digest(digest)}" if separator else "")


def short_id(co_id: str) -> str:
    """Return the beginning of a Jazz id, which a person can compare: `co_zAbCdEfGh…`."""
    return co_id if len(co_id) <= ID_LETTERS else f"{co_id[:ID_LETTERS]}…"


def age(since_ms: int, now_ms: int | None = None) -> str:
    """Return how long ago a time was, in its largest unit: `5s`, `12m`, `3h`, `8d`.

    Args:
        since_ms: the time, in ms since the epoch; one in the future counts as now.
        now_ms: the current time; the clock's if not given.
    """
    seconds = max(0, (int(time.time() * 1000) if now_ms is None else now_ms) - since_ms) // 1000
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{seconds // length}{unit}"
    return "0s"


def age_of_text(at: str) -> str:
    """Return how long ago a time as text was, in ISO 8601."""
    return age(int(datetime.fromisoformat(at).timestamp() * 1000))
