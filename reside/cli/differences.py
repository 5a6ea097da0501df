"""Show what the approval of a load request changes in Kubernetes: side by side on a terminal, as lines elsewhere."""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import yaml
from rich.console import Group as Rendered
from rich.table import Table
from rich.text import Text

from reside.cli import output
from reside.model.previews import ObjectChange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, RenderableType

    from reside.model.entities import LoadRequest

Row = tuple[str | None, str | None]
"""A line of the live object and one of the desired object; None: there is none."""
_NO_CHANGE = "nothing changes in Kubernetes"
_NOT_SHOWN = "(not shown: too large, or previewed by an earlier release)"


def changes_of(request: LoadRequest) -> tuple[ObjectChange, ...]:
    """Return the changes in the preview of a load request, without objects that stay as they are.

    Raises:
        InvalidInput: the preview is malformed.
    """
    found = (ObjectChange.parse(change) for change in (request.preview or {}).get("changes") or ())
    return tuple(change for change in found if change.action != "same")


def show(console: Console, changes: Sequence[ObjectChange]) -> None:
    """Print changes: in two columns on a terminal, whatever its width, else as lines."""
    if not changes:
        console.print(_NO_CHANGE)
    elif console.is_terminal:
        console.print(side_by_side(changes))
    else:
        for line in lines(changes):
            console.print(output.printable(line), markup=False, highlight=False, soft_wrap=True)


def side_by_side(changes: Sequence[ObjectChange]) -> RenderableType:
    """Return changes in two columns, the live object left and the desired one right, in the width of the terminal."""
    parts: list[RenderableType] = []
    for change in changes:
        table = Table(box=None, pad_edge=False, expand=True, show_header=False)
        for _ in range(2):
            table.add_column(ratio=1, overflow="fold")
        for path, rows in _sections(change):
            if path:
                table.add_row(Text(output.printable(path), style="cyan"), "")
            for before, after in rows:
                same = before == after
                table.add_row(_cell(before, "" if same else "red"), _cell(after, "" if same else "green"))
        parts += [Text(output.printable(_head(change)), style="bold"), table, Text()]
    return Rendered(*parts)


def lines(changes: Sequence[ObjectChange]) -> Iterator[str]:
    """Yield changes as lines: what goes after `-`, what comes after `+`."""
    for change in changes:
        yield _head(change)
        for path, rows in _sections(change):
            if path:
                yield f"  {path}"
            for before, after in rows:
                if before == after:
                    yield f"      {before}"
                else:
                    yield from (f"    - {before}",) if before is not None else ()
                    yield from (f"    + {after}",) if after is not None else ()


def _head(change: ObjectChange) -> str:
    version = (change.live or "").partition(" ")[2]
    return f"{change.action} {change.object}{f' (live {version})' if version else ''}"


def _sections(change: ObjectChange) -> Iterator[tuple[str, list[Row]]]:
    if not change.values:
        yield ", ".join(change.paths), [(_NOT_SHOWN, _NOT_SHOWN)]
    for value in change.values:
        yield value.path, _rows(_text(value.before), _text(value.after))


def _rows(before: list[str], after: list[str]) -> list[Row]:
    """Return the lines of both sides; lines that both have are in one row."""
    rows: list[Row] = []
    for tag, start, end, left, right in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        both = zip(before[start:end], after[left:right], strict=True) if tag == "equal" else ()
        rows += [*both] or [*zip_longest(before[start:end], after[left:right])]
    return rows if before != after else [(line, f"{line} (changed)") for line in before]


def _text(value: Any) -> list[str]:
    """Return a value as lines of YAML; a text as its lines."""
    if value is None:
        return []
    if isinstance(value, str):
        return value.splitlines() or [""]
    if not isinstance(value, dict | list):
        return [json.dumps(value)]
    return yaml.safe_dump(value, sort_keys=True, allow_unicode=True, width=10_000).splitlines()


def _cell(line: str | None, style: str) -> Text:
    return Text("" if line is None else output.printable(line), style=style)
