"""What the command prints: tables for people, JSON for programs, one line for an error."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

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
        built.add_row(*("" if cell is None else str(cell) for cell in row))
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
    errors.print(f"[bold red]error:[/] {_plain(message)}", highlight=False, soft_wrap=True)


def _plain(message: str) -> str:
    return " ".join(message.split()).replace("[", "\\[")
