"""Output of the command: tables for people, JSON for programs, one line for an error.

Invariant: text from elsewhere (a manifest, an error of a server) is printed literally, never as markup or as terminal
control sequences. Otherwise an image could hide its requirements from the operator who approves it.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PIPED_WIDTH = 240
"""Width of the output in a pipe or a file, in columns: wide enough that no cell is truncated."""


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=PIPED_WIDTH)


console = _console(stderr=False)
errors = _console(stderr=True)


class Output(StrEnum):
    """Format of the output."""

    table = "table"
    json = "json"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    """Return a table; None becomes an empty cell."""
    result = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        result.add_column(column, overflow="fold")
    for row in rows:
        result.add_row(*(Text("" if cell is None else printable(str(cell))) for cell in row))
    return result


def listing(records: Sequence[dict[str, Any]], columns: Sequence[str], format_: Output) -> None:
    """Print records: the named members as a table, or all members as a JSON array."""
    if format_ is Output.json:
        print_json(records)
        return
    console.print(table([c.upper() for c in columns], ([record.get(c) for c in columns] for record in records)))


def record(values: dict[str, Any], format_: Output) -> None:
    """Print one record: as a table with one row for each member, or as JSON."""
    if format_ is Output.json:
        print_json(values)
        return
    console.print(table(["", ""], values.items()))


def print_json(document: Any) -> None:
    """Print a JSON document. What is not ASCII is escaped: a terminal obeys some control characters beyond it."""
    console.print_json(json.dumps(document), ensure_ascii=True)


def fail(message: str) -> None:
    """Print an error to standard error in one line."""
    line = Text.assemble(("error:", "bold red"), " ", printable(" ".join(message.split())))
    errors.print(line, highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning to standard error in one line."""
    errors.print(Text.assemble(("warning:", "bold yellow"), " ", printable(message)), highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """Return the text with each unprintable character replaced by its escape sequence."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
