"""`reside replica graph`: which replica requires which other one."""

from __future__ import annotations

import asyncio
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reside.cli import config, output
from reside.cli.replicas import ReplicaView
from reside.cli.session import open_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reside.cli.replicas import Row


class Format(StrEnum):
    """Format of a graph."""

    tree = "tree"
    dot = "dot"
    json = "json"


def graph(
    *,
    format_: Annotated[
        Format, typer.Option("--output", "-o", help="Format of the graph; `dot` is that of Graphviz.")
    ] = Format.tree,
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """Show which replica requires which other one, by the requirements of the current versions."""

    async def run() -> list[Row]:
        async with open_session(config.load(), context) as session:
            return await ReplicaView(session.node, session.data).rows()

    rows = asyncio.run(run())
    if format_ is Format.json:
        output.print_json({"replicas": [_replica(row) for row in rows], "requirements": edges(rows)})
        return
    for line in tree(rows) if format_ is Format.tree else dot(rows):
        output.line(line)


def _replica(row: Row) -> dict[str, Any]:
    return {member: row[member] for member in ("id", "name", "status", "version", "implements")}


def edges(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return one record for each replica that serves a requirement, and for each that no replica serves."""
    names = {row["id"]: row["name"] for row in rows}
    return [
        {
            "from": row["name"],
            "key": requirement["key"],
            "contract": requirement["contract"],
            "to": None if number is None else names.get(number, f"replica {number}"),
        }
        for row in rows
        for requirement in row["requires"]
        for number in requirement["replicas"] or [None]
    ]


def tree(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a tree for each replica that no other one requires, then for those in circles."""
    found = edges(rows)
    required = {edge["to"] for edge in found}
    shown: set[str] = set()
    names = [row["name"] for row in rows]
    for name in [*(each for each in names if each not in required), *names]:
        if name not in shown:
            yield name
            yield from _below(name, found, shown, "")


def _below(name: str, found: Sequence[dict[str, Any]], shown: set[str], indent: str) -> Iterator[str]:
    """Yield the lines below a replica; what was shown before is not shown again."""
    shown.add(name)
    own = [edge for edge in found if edge["from"] == name]
    for position, edge in enumerate(own):
        last = position == len(own) - 1
        to = edge["to"]
        inner = [each for each in found if each["from"] == to]
        again = " (above)" if to in shown and inner else ""
        yield f"{indent}{'└─' if last else '├─'} {edge['key']}: {to or 'no replica, and it is optional'}{again}"
        if to is not None and to not in shown:
            yield from _below(to, found, shown, indent + ("   " if last else "│  "))


def dot(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the graph in the language of Graphviz."""
    yield "digraph replicas {"
    for row in rows:
        yield f"  {json.dumps(row['name'])};"
    for edge in edges(rows):
        if edge["to"] is not None:
            yield f"  {json.dumps(edge['from'])} -> {json.dumps(edge['to'])} [label={json.dumps(edge['key'])}];"
    yield "}"
