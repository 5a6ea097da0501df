"""What the command prints: tables for people, JSON for programs, one line for an error.

Invariant: what others wrote (a manifest, an error of a server) is shown as it is, and never as markup or as commands of
the terminal, or an image could hide what it asks for from who approves it.
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
"""Columns of a table that no terminal limits: in a pipe or a file nothing may be cut off."""


def _console(*, stderr: bool) -> Console:
    found = Console(stderr=stderr)
    return found if found.is_terminal else Console(stderr=stderr, width=PIPED_WIDTH)


console = _console(stderr=False)
errors = _console(stderr=True)


class Output(StrEnum):
    """Form of a listing."""

    table = "table"
    json = "json"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> Table:
    """A table; None prints as nothing."""
    built = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        built.add_column(column, overflow="fold")
    for row in rows:
        built.add_row(*(Text("" if cell is None else printable(str(cell))) for cell in row))
    return built


def listing(records: Sequence[dict[str, Any]], columns: Sequence[str], form: Output) -> None:
    """Print records: the named members as a table, or all of them as a JSON array."""
    if form is Output.json:
        console.print_json(json.dumps(records))
        return
    console.print(table([c.upper() for c in columns], ([record.get(c) for c in columns] for record in records)))


def record(values: dict[str, Any], form: Output) -> None:
    """Print one record, member by member or as JSON."""
    if form is Output.json:
        console.print_json(json.dumps(values))
        return
    console.print(table(["", ""], values.items()))


def fail(message: str) -> None:
    """Print an error on standard error, in one line."""
    line = Text.assemble(("error:", "bold red"), " ", printable(" ".join(message.split())))
    errors.print(line, highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """The text with each character that a terminal would not show written as its escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
