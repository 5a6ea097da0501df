"""`reside replica describe`: an instance, and what the Sentinel reports of its Kubernetes objects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reside.cli import config, output
from reside.cli.explanations import causes
from reside.cli.grantees import read_names
from reside.cli.sentinel_maps import open_maps
from reside.cli.session import open_session
from reside.jazz import AccountId, ValueDeleted
from reside.model.constants import SENTINEL_NAME
from reside.model.errors import NotAllowed, NotReady
from reside.model.kinds import BY_KIND
from reside.model.reports import StackReport
from reside.model.sentinel_data import REPORTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.cli.explanation import Explanation
    from reside.cli.replicas import Row
    from reside.jazz import Node
    from reside.model.reports import ObjectReport

app = typer.Typer()
COLUMNS = ("object", "state", "reason")
READ = BY_KIND["Deployment"].read
"""A permission with which an account may read reports; any permission on the Sentinel is sufficient."""
_DIGEST = 12
"""Characters of a digest or a revision that are shown."""


@app.command("describe")
def describe(
    name: Annotated[str, typer.Argument(help="Name of the replica.")],
    *,
    format_: Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")] = (
        output.Output.table
    ),
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """Show a replica and its Kubernetes objects: state, reason with cure, and what other programs change in them."""

    async def run() -> tuple[Row, StackReport | None, str | None]:
        async with open_session(config.load(), context) as session:
            names = await read_names(session)
            row = names.replica(name)
            sentinel = AccountId(names.account(SENTINEL_NAME))
            try:
                return row, await read_report(session.node, sentinel, name), None
            except NotAllowed as error:
                return row, None, str(error)

    show(*asyncio.run(run()), format_)


async def read_report(node: Node, sentinel: AccountId, stack: str) -> StackReport:
    """Return what the Sentinel reports of a stack, without what is live; an empty report if there is none.

    Raises:
        NotAllowed: this account may not read reports.
        NotReady: the Sentinel has not published its data yet.
    """
    (reports,) = await open_maps(node, sentinel, (REPORTS,), READ)
    target = reports.get(stack)
    try:
        return StackReport.parse({} if target is None else (await node.load_map(str(target))).as_dict())
    except ValueDeleted:
        raise NotReady(f"the Sentinel has just replaced the report of {stack}: try again") from None


def show(row: Row, report: StackReport | None, missing: str | None, format_: output.Output) -> None:
    """Print a replica with its report; `missing` says why there is no report."""
    if format_ is not output.Output.table:
        found = {each.code: each.cure for each in explained(row, report)}
        output.record({**row, "report": None if report is None else report.document(), "cures": found}, format_)
    else:
        for line in head(row, report):
            _say(line)
        if report is not None:
            objects = object_rows(report)
            output.console.print(output.table([c.upper() for c in COLUMNS], ([o[c] for c in COLUMNS] for o in objects)))
            for line in notes(report):
                _say(line)
        for line in cures(row, report):
            _say(line)
    if missing is not None:
        output.warn(missing)


def head(row: Row, report: StackReport | None) -> Iterator[str]:
    """Yield the lines about a replica and its stack."""
    why = f": {row['note']}" if row["note"] else ""
    yield f"{row['name']} (id {row['id']}) version {row['version']} is {row['status']}{why}"
    yield f"image  {row['image']}"
    if report is None:
        return
    if report.error is not None:
        yield f"stack  not as declared: {report.error}"
    elif report.revision is None:
        yield "stack  is being applied"
    else:
        yield f"stack  revision {report.revision[:_DIGEST]} is applied"


def object_rows(report: StackReport) -> list[dict[str, Any]]:
    """Return the objects of a report as rows, those first that are not current."""
    rows = [
        {"object": key, "state": state_of(found), "reason": found.error or found.reason or found.problem}
        for key, found in report.objects.items()
    ]
    return sorted(rows, key=lambda row: (row["state"] == "current", row["object"]))


def state_of(found: ObjectReport) -> str:
    """Return the state of an object; without a live object, what the Sentinel does with it."""
    if found.status == "error":
        return "error"
    return found.state or ("applying" if found.status == "requested" else "unknown")


def notes(report: StackReport) -> Iterator[str]:
    """Yield what others do to the objects, and advice of the policy."""
    drift = [f"  {key}: {text}" for key, found in report.objects.items() for text in found.drift]
    reverted = [f"  {key}: {text}" for key, found in report.objects.items() for text in found.reverted]
    for title, lines in (
        ("drift:", drift),
        ("changed back within the last hour:", reverted),
        ("advice of the policy:", [f"  {each}" for each in report.advice]),
    ):
        if lines:
            yield title
            yield from lines


def explained(row: Row, report: StackReport | None) -> list[Explanation]:
    """Return what is known about the reasons of a replica and of its objects."""
    objects = [] if report is None else [each["reason"] for each in object_rows(report)]
    return list(causes([row["note"], None if report is None else report.error, *objects]))


def cures(row: Row, report: StackReport | None) -> Iterator[str]:
    """Yield what to do about each known reason, by its code, which `reside explain` explains."""
    found = explained(row, report)
    if found:
        yield "what to do:"
    for each in found:
        yield f"  {each.code}: {each.cure}"


def _say(line: str) -> None:
    output.console.print(output.printable(line), highlight=False, markup=False, soft_wrap=True)
