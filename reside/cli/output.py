"""Output of the command: tables for people, JSON for programs, one line for an error.

Invariant: text from elsewhere (a manifest, an error of a server) is printed literally, never as markup or as terminal
control sequences. Otherwise an image could hide its requirements from the operator who approves it.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PIPED_WIDTH = 240
"""Width of the output in a pipe or a file, in columns: wide enough that no cell is truncated."""
_GAP: Final = 2
"""Columns between two cells of a table."""
_LAST_COLUMN: Final = 16
"""Width under which the last column of a table is not legible."""


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=PIPED_WIDTH)


console = _console(stderr=False)
errors = _console(stderr=True)


class Output(StrEnum):
    """Format of the output."""

    table = "table"
    json = "json"
    yaml = "yaml"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    """Return a table; None becomes an empty cell. If the console has room, only the last column folds."""
    result = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    cells = [[cell if isinstance(cell, Text) else _text(cell) for cell in row] for row in rows]
    firm = len(columns) - 1
    widths = [max([len(columns[i]), *(row[i].cell_len for row in cells)]) + _GAP for i in range(firm)]
    has_room = sum(widths) + _LAST_COLUMN <= console.width
    for i, column in enumerate(columns):
        result.add_column(column, overflow="fold", no_wrap=has_room and i < firm)
    for row in cells:
        result.add_row(*row)
    return result


def _text(cell: Any) -> Text:
    return Text("" if cell is None else printable(str(cell)))


def record(values: dict[str, Any], format_: Output) -> None:
    """Print one record: as a table with one row for each member, or as JSON or YAML."""
    if format_ is Output.json:
        print_json(values)
        return
    if format_ is Output.yaml:
        print_yaml(values)
        return
    console.print(table(["", ""], values.items()))


def print_yaml(document: Any) -> None:
    """Print a document as YAML. What is not ASCII is escaped, as in JSON."""
    import yaml  # noqa: PLC0415 - the help does without it

    console.out(yaml.safe_dump(document, sort_keys=False, width=console.width).rstrip(), highlight=False)


def line(text: str) -> None:
    """Print one line as it is: neither folded nor marked up."""
    console.print(printable(text), markup=False, highlight=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """Print a JSON document. What is not ASCII is escaped: a terminal obeys some control characters beyond it."""
    console.print_json(json.dumps(document), ensure_ascii=True)


def fail(message: str, notes: Sequence[str] = ()) -> None:
    """Print an error to standard error in one line, and each of its notes in another."""
    line = Text.assemble(("error:", "bold red"), " ", printable(" ".join(message.split())))
    errors.print(line, highlight=False, soft_wrap=True)
    for note in notes:
        errors.print(f"  {printable(note)}", markup=False, highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """Print a warning to standard error in one line."""
    errors.print(Text.assemble(("warning:", "bold yellow"), " ", printable(message)), highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """Return the text with each unprintable character replaced by its escape sequence."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
