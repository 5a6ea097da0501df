"""`reside replica describe`: an instance, what it waits for, and what the Sentinel reports of its Kubernetes objects.

What the account may not read is left out, and a warning says how to get the right.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

from reside.cli import config, output, replica_requests
from reside.cli.explanations import causes
from reside.cli.grantees import read_names
from reside.cli.missing_grants import missing_grants
from reside.cli.replica_requests import requests_of
from reside.cli.sentinel_maps import open_maps
from reside.cli.session import open_session
from reside.jazz import AccountId, ValueDeleted
from reside.model.constants import SENTINEL_NAME
from reside.model.errors import NotAllowed, NotReady
from reside.model.kinds import BY_KIND
from reside.model.reports import StackReport
from reside.model.sentinel_data import REPORTS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping, Sequence

    from rich.table import Table

    from reside.cli.explanation import Explanation
    from reside.cli.grantees import Names
    from reside.cli.replicas import Row
    from reside.cli.session import Session
    from reside.jazz import Node
    from reside.model.entities import LoadRequest
    from reside.model.reports import ObjectReport

Found = TypeVar("Found")

app = typer.Typer()
COLUMNS = ("object", "state", "reason")
READ = BY_KIND["Deployment"].read
"""A permission with which an account may read reports; any permission on the Sentinel is sufficient."""
ALPHA_S: Final = 10.0
"""Seconds to wait for Alpha, which only knows about grants: all else comes from Jazz."""
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
    """Show a replica, its open and failed loads, and its objects: state, reason, cure, what others change in them."""

    async def run() -> Described:
        async with open_session(config.load(), context, calls_alpha=True) as session:
            return await read(session, name)

    show(asyncio.run(run()), format_)


@dataclass(frozen=True)
class Described:
    """What is known about a replica.

    Attributes:
        name: its name.
        row: the replica; None if it has no version yet.
        report: what the Sentinel reports; None if that is not readable.
        requests: the load requests that matter now.
        grants: a sentence about each permission that it waits for.
        missing: what is not readable, and how to get it.
    """

    name: str
    row: Row | None
    report: StackReport | None = None
    requests: Sequence[LoadRequest] = ()
    grants: Sequence[str] = ()
    missing: Sequence[str] = ()

    @property
    def waits(self) -> list[str]:
        """A sentence about each load request and permission."""
        return [*replica_requests.lines(self.requests), *self.grants]


async def read(session: Session, name: str) -> Described:
    """Read what this account may read about a replica.

    Raises:
        InvalidInput: neither a replica nor a load request has this name.
    """
    names = await read_names(session)
    row = next((row for row in names.replicas if row["name"] == name), None)
    missing: list[str] = []

    async def unless_refused(what: str, reading: Awaitable[Found], default: Found) -> Found:
        try:
            return await reading
        except (NotAllowed, NotReady) as error:
            missing.append(f"{what} are not shown: {error}")
            return default

    none: list[Any] = []
    requests = await unless_refused("its load requests", requests_of(session, name, row), none)
    if row is None:
        if not requests:
            names.replica(name)
        return Described(name, None, None, requests, (), missing)
    empty: StackReport | None = None
    report = await unless_refused("its Kubernetes objects", _report(session.node, names, name), empty)
    by_id = {each["id"]: each["name"] for each in names.replicas}
    grants = await unless_refused("missing grants", _missing_grants(session, row, by_id), none)
    return Described(name, row, report, requests, grants, missing)


async def _missing_grants(session: Session, row: Row, names: Mapping[int, str]) -> list[str]:
    try:
        async with asyncio.timeout(ALPHA_S):
            return await missing_grants(session, row, names)
    except TimeoutError:
        raise NotReady(
            f"Alpha has not answered for {ALPHA_S:.0f} s: `reside doctor` shows which part is away"
        ) from None


async def _report(node: Node, names: Names, stack: str) -> StackReport | None:
    if all(row["name"] != SENTINEL_NAME for row in names.replicas):
        raise NotReady("the Sentinel is not loaded yet")
    return await read_report(node, AccountId(names.account(SENTINEL_NAME)), stack)


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


def show(found: Described, format_: output.Output) -> None:
    """Print what is known about a replica."""
    if format_ is not output.Output.table:
        output.record(_document(found), format_)
    else:
        for line in _text(found):
            _say(line)
    for line in found.missing:
        output.warn(line)


def _document(found: Described) -> dict[str, Any]:
    return {
        **(found.row or {"name": found.name}),
        "requests": [replica_requests.document(each) for each in found.requests],
        "missingGrants": list(found.grants),
        "report": None if found.report is None else found.report.document(),
        "cures": {each.code: each.cure for each in explained(found)},
    }


def _text(found: Described) -> Iterator[str | Table]:
    if found.row is None:
        yield f"{found.name} has no version yet"
    else:
        yield from head(found.row, found.report)
    if found.waits:
        yield "loads and permissions:"
        yield from (f"  {line}" for line in found.waits)
    if found.report is not None:
        objects = object_rows(found.report)
        yield output.table([c.upper() for c in COLUMNS], ([o[c] for c in COLUMNS] for o in objects))
        yield from notes(found.report)
    yield from cures(found)


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


def explained(found: Described) -> list[Explanation]:
    """Return what is known about the reasons of a replica, of what it waits for, and of its objects."""
    own = [] if found.row is None else [found.row["note"]]
    of_stack = [] if found.report is None else [found.report.error, *_reasons(found.report)]
    return list(causes([*own, *found.waits, *of_stack]))


def _reasons(report: StackReport) -> list[str | None]:
    return [each["reason"] for each in object_rows(report)]


def cures(found: Described) -> Iterator[str]:
    """Yield what to do about each known reason, by its code, which `reside explain` explains."""
    known = explained(found)
    if known:
        yield "what to do:"
    for each in known:
        yield f"  {each.code}: {each.cure}"


def _say(line: str | Table) -> None:
    if isinstance(line, str):
        output.console.print(output.printable(line), highlight=False, markup=False, soft_wrap=True)
    else:
        output.console.print(line)
