"""Rendering of a report: as text for a terminal, or as JSON for programs."""

import json
from collections.abc import Iterator
from typing import Any, Final

from reside.jazz.ids import Json
from reside.jazz.inspect.report import OwnerReport, Report
from reside.jazz.wire.deep_json import write_deep
from reside.jazz.wire.encoding import compact_json

_MAX_SHOWN: Final = 100


def render(report: Report) -> str:
    """Return a report as text."""
    return "\n".join(_lines(report)) + "\n"


def render_json(report: Report) -> str:
    """Return a report as indented JSON."""
    members: dict[str, Any] = dict(vars(report))
    members["group"] = None if report.group is None else vars(report.group)
    members["transactions"] = [vars(item) for item in report.transactions]
    return _indented(members) + "\n"


def _indented(value: Json) -> str:
    """Return JSON as `json.dumps` with an indent writes it, at any depth."""
    return write_deep(value, scalar=_scalar, key=_scalar, indented=True)


def _scalar(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.id}  {report.kind}"
    created, unique = report.header.get("createdAt"), report.header.get("uniqueness")
    yield f"  created  {created}" if created else f"  unique   {json.dumps(unique)}"
    if report.group is not None:
        yield from _owner_lines(report.group, itself=report.group.id == report.id)
    for note in report.notes:
        yield f"  note     {note}"
    yield "content"
    yield from (f"  {line}" for line in _indented(report.content).splitlines())
    counted = sum(1 for item in report.transactions if item.outcome == "valid")
    yield f"transactions: {len(report.transactions)}, of which {counted} count"
    for item in report.transactions:
        yield f"  {item.outcome:<10} {item.made_at}  {item.privacy:<8} {item.author} ({item.role or 'no role'})"
        yield f"             {item.session.partition('_session_')[2]}/{item.index}  {_shortened(item.changes)}"
        if item.reason is not None:
            yield f"             because {item.reason}"


def _owner_lines(group: OwnerReport, *, itself: bool) -> Iterator[str]:
    name = f" {json.dumps(group.name, ensure_ascii=False)}" if group.name else ""
    if not itself:
        yield f"  owner    {group.kind} {group.id}{name}"
    elif name:
        yield f"  name    {name}"
    yield f"  my role  {group.my_role or 'none'}"
    for member, role in group.members.items():
        yield f"  member   {member} {role}"
    for parent, mapping in group.parents.items():
        yield f"  extends  {parent} {mapping}"


def _shortened(changes: Json) -> str:
    if changes is None:
        return "(can't be read)"
    try:
        text = json.dumps(changes, ensure_ascii=False)
    except RecursionError:
        text = compact_json(changes)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}… ({len(text)} characters)"
