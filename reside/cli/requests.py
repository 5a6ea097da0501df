"""`reside request`: load requests, so that one person asks for a load and another one decides on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from pydantic import ValidationError

from reside.cli import config, differences, listing, loading, output
from reside.cli.listing import Column, ListOptions
from reside.cli.outages import leaving, outages_shown
from reside.cli.progress import Steps
from reside.cli.prompt import confirm
from reside.cli.rendered_request import render_request
from reside.cli.session import Session, open_session
from reside.cli.shared_options import with_options
from reside.cli.spec_options import ImageArgument, SpecOptions
from reside.jazz import ValueDeleted
from reside.model import lookup
from reside.model.alpha_contract import (
    FINISHED_REQUESTS,
    LOAD_REQUESTS,
    OPEN_REQUESTS,
    READ_REQUESTS,
)
from reside.model.entities import LoadRequest, LoadRequestSpec
from reside.model.errors import InvalidInput, NotAllowed, ResideError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.jazz import CoList, CoMap

app = typer.Typer(no_args_is_help=True)

COLUMNS = (
    Column("id"),
    Column("status", style=listing.status_style),
    Column("name"),
    Column("createdAt", short=listing.age, header="age"),
    Column("image", short=listing.short_image),
    Column("reason"),
)
ContextName = Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")]
Number = Annotated[int, typer.Argument(metavar="ID", help="Id of the load request.")]
Format = Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")]


@app.command("create")
@with_options(SpecOptions)
def create(
    image: ImageArgument,
    *,
    options: SpecOptions,
    context: ContextName = None,
) -> None:
    """Ask for the load of an image, and show what its approval would grant; somebody else may approve it."""
    asyncio.run(_create(context, options.spec(image)))


async def _create(context: str | None, spec: LoadRequestSpec) -> None:
    async with open_session(config.load(), context) as session, outages_shown(session):
        with Steps("request") as steps:
            number, request = await loading.create_request(session, spec)
            steps.report(f"request {number}", "created")
            seen = await loading.wait_validated(request, lambda line: steps.report(line, ""))
    output.console.print(render_request(seen))
    output.console.print(f"load request {number} waits for approval: reside request approve {number}")


@app.command("list")
@with_options(ListOptions)
def list_requests(
    *,
    every: Annotated[bool, typer.Option("--all", help="Also those that are finished and kept.")] = False,
    options: ListOptions,
    context: ContextName = None,
) -> None:
    """List the load requests that nobody has decided yet or that are being carried out."""
    asyncio.run(_list(context, options, every=every))


async def _list(context: str | None, options: ListOptions, *, every: bool) -> None:
    async with open_session(config.load(), context) as session:
        rows = [_row(request) | {"createdAt": at} for request, at in await _read_dated(session, every=every)]
    listing.show(rows, COLUMNS, options, name="id", empty="no load request is open")


async def read_all(session: Session, *, every: bool) -> list[LoadRequest]:
    """Return the open load requests, and if `every` is set also those that are finished and kept, sorted by id.

    Raises:
        NotAllowed: the account may not read them.
    """
    return [request for request, _ in await _read_dated(session, every=every)]


async def _read_dated(session: Session, *, every: bool) -> list[tuple[LoadRequest, int | None]]:
    """Return load requests, each with the time of its creation in ms since the epoch; see `read_all`."""
    ids = await (_all_ids(session) if every else _open_ids(session))
    read = [await _read_unless_gone(session, co_id) for co_id in ids]
    return sorted((found for found in read if found is not None), key=lambda found: found[0].id)


class People(NamedTuple):
    """The account that made a load request, and the one that decided on it; None if it is not known."""

    client: str | None = None
    decided_by: str | None = None


async def read_people(session: Session, numbers: Sequence[int]) -> dict[int, People]:
    """Return who made and who decided each of these load requests; those that are not kept any more are left out.

    Raises:
        NotAllowed: the account may not read load requests.
    """
    listed: dict[str, object] = {}
    if FINISHED_REQUESTS in session.data:
        finished = (await _index(session, FINISHED_REQUESTS)).as_dict()
        listed |= {key: entry.get("request") for key, entry in finished.items() if isinstance(entry, dict)}
    listed |= (await _index(session, OPEN_REQUESTS)).as_dict()
    return {
        number: people
        for number in numbers
        if (co_id := listed.get(str(number))) and (people := await _people(session, str(co_id))) is not None
    }


async def _people(session: Session, co_id: str) -> People | None:
    try:
        found = await session.node.load_map(co_id)
    except ValueDeleted:  # it was deleted after the index was read
        return None
    client, decided_by = found.get("client"), found.get("decidedBy")
    return People(client if isinstance(client, str) else None, decided_by if isinstance(decided_by, str) else None)


async def read_open(session: Session) -> list[LoadRequest]:
    """Return the open load requests.

    Raises:
        NotAllowed: the account may not read them.
    """
    read = [await _read_unless_gone(session, co_id) for co_id in await _open_ids(session)]
    return [found[0] for found in read if found is not None]


async def read_finished_after(session: Session, number: int, most: int = 20) -> list[LoadRequest]:
    """Return the last finished load requests with a greater id than this that were not carried out, if they are kept.

    Raises:
        NotAllowed: the account may not read them.
    """
    if FINISHED_REQUESTS not in session.data:
        return []
    finished = (await _index(session, FINISHED_REQUESTS)).as_dict()
    later = {int(key): entry for key, entry in finished.items() if isinstance(entry, dict) and int(key) > number}
    failed = [later[key] for key in sorted(later, reverse=True) if str(later[key].get("of")).startswith("client ")]
    read = [await _read_unless_gone(session, str(entry.get("request"))) for entry in failed[:most]]
    return [found[0] for found in read if found is not None]


async def _open_ids(session: Session) -> Sequence[str]:
    listed = await _index(session, OPEN_REQUESTS)
    return [str(item) for item in listed.values()]


async def _all_ids(session: Session) -> Sequence[str]:
    earlier = await session.node.load_list(session.data[LOAD_REQUESTS])
    _check_readable(earlier)
    found = [*(str(item) for item in earlier), *await _open_ids(session)]
    if FINISHED_REQUESTS in session.data:
        finished = (await _index(session, FINISHED_REQUESTS)).values()
        found += [str(entry.get("request")) for entry in finished if isinstance(entry, dict)]
    return list(dict.fromkeys(found))


async def _index(session: Session, member: str) -> CoMap:
    """Return an index of Alpha's root map; Alpha replaces it from time to time."""
    while True:
        co_id = session.data[member]
        try:
            listed = await session.node.load_map(co_id)
        except ValueDeleted:
            if session.data[member] != co_id:
                continue
            raise
        _check_readable(listed)
        return listed


async def _read_unless_gone(session: Session, co_id: str) -> tuple[LoadRequest, int | None] | None:
    try:
        value = await session.node.load_map(co_id)
        return await _read(session, value), value.created_at
    except ValueDeleted:  # it was deleted after the indexes were read
        return None


def _check_readable(listed: CoMap | CoList) -> None:
    if listed.group.my_role is None:
        raise NotAllowed(f"load requests can't be listed: the account needs {READ_REQUESTS}")


def _row(request: LoadRequest) -> dict[str, Any]:
    content = request.approve_request
    return {
        "id": request.id,
        "status": request.status,
        "name": content.name if content else request.requested_name,
        "image": request.image,
        "reason": request.error_message or request.rejection_reason,
        "owner": request.owner,
        "decidedBy": request.decided_by,
        "replica": request.target_replica if request.version is not None else request.existing_replica,
        "version": request.version,
        "revision": request.revision,
    }


@app.command("show")
def show(number: Number, *, format_: Format = output.Output.table, context: ContextName = None) -> None:
    """Show a load request: what its approval grants, and the preview of its objects."""
    asyncio.run(_show(context, number, format_))


async def _show(context: str | None, number: int, format_: output.Output) -> None:
    async with open_session(config.load(), context) as session:
        request = await _read(session, await find(session, number))
    if format_ is not output.Output.table or request.approve_request is None:
        output.record(_row(request) if format_ is output.Output.table else request.document(), format_)
        return
    output.console.print(render_request(request))
    output.console.print(f"status: {output.printable(_status(request))}", markup=False, highlight=False)


@app.command("diff")
def diff(number: Number, *, format_: Format = output.Output.table, context: ContextName = None) -> None:
    """Show what the approval of a load request changes in Kubernetes: live values and desired ones, side by side."""
    asyncio.run(_diff(context, number, format_))


async def _diff(context: str | None, number: int, format_: output.Output) -> None:
    async with open_session(config.load(), context) as session:
        request = await _read(session, await find(session, number))
    if request.status != "requires-approval":
        raise InvalidInput(f"load request {number} has no preview: it is {_status(request)}")
    show_changes([request], format_)


def show_changes(requests: Sequence[LoadRequest], format_: output.Output) -> None:
    """Print what the approval of these load requests changes."""
    if format_ is output.Output.json:
        found = [
            {"id": request.id, "changes": [change.document() for change in differences.changes_of(request)]}
            for request in requests
        ]
        output.print_json(found)
        return
    for request in requests:
        output.console.print(f"load request {request.id}", markup=False, highlight=False)
        differences.show(output.console, differences.changes_of(request))


def _status(request: LoadRequest) -> str:
    reason = request.error_message or request.rejection_reason
    return f"{request.status} ({reason})" if reason else request.status


@app.command("approve")
def approve(
    number: Number,
    *,
    choose: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=REPLICA", help="Ids of the replicas for a requirement, separated by commas."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Another name for the new instance.")] = None,
    auto_approve: Annotated[bool, typer.Option("--auto-approve", help="Approve without asking.")] = False,
    context: ContextName = None,
) -> None:
    """Approve a load request as it is shown, and wait until its version exists."""
    choices = dict(parse_choice(text) for text in choose or ())
    done = asyncio.run(_approve(context, number, choices, name, auto_approve=auto_approve))
    output.console.print(f"load request {number} is approved: version {done.version} of replica {done.target_replica}")


def parse_choice(text: str) -> tuple[str, list[int]]:
    """Parse `KEY=ID,ID`; an empty list chooses no replica.

    Raises:
        InvalidInput: it has another form.
    """
    key, separator, ids = text.partition("=")
    parts = [part.strip() for part in ids.split(",") if part.strip()]
    if not key or not separator or not all(part.isdecimal() for part in parts):
        raise InvalidInput(f"--choose {text!r} is not KEY=REPLICA: name a requirement and ids, such as greeting=3")
    return key, [int(part) for part in parts]


async def _approve(
    context: str | None, number: int, choices: dict[str, list[int]], name: str | None, *, auto_approve: bool
) -> LoadRequest:
    async def decide(request: LoadRequest) -> None:
        output.console.print(render_request(request))
        with leaving(loading.stays_open(number)):
            if not auto_approve and not await confirm("Approve?"):
                raise ResideError(f"load request {number} was not approved: nothing was changed")

    def report(line: str) -> None:
        output.errors.print(output.printable(line), highlight=False, markup=False, soft_wrap=True)

    async with open_session(config.load(), context) as session, outages_shown(session):
        request = await find(session, number)
        seen = await _read(session, request)
        if seen.status not in ("validating", "requires-approval"):
            raise InvalidInput(f"load request {number} can't be approved: it is {_status(seen)}")
        seen = await loading.wait_validated(request, report)
        asked = {"choices": choices} | ({} if name is None else {"name": name})
        return await loading.approve(session, request, seen, decide, report, asked=asked)


@app.command("reject")
def reject(
    number: Number,
    *,
    reason: Annotated[str, typer.Option(help="Why; the requester sees it.")],
    context: ContextName = None,
) -> None:
    """Reject a load request."""
    asyncio.run(_reject(context, number, reason))
    output.console.print(f"load request {number} is rejected")


async def _reject(context: str | None, number: int, reason: str) -> None:
    async with open_session(config.load(), context) as session:
        await loading.reject(session, await find(session, number), number, reason)


async def find(session: Session, number: int) -> CoMap:
    """Return the map of a load request.

    Raises:
        InvalidInput: it does not exist, or is not kept any more.
    """
    named = await session.node.find_unique_map(session.data.group.id, lookup.load_request_by_id(number))
    target = None if named is None else lookup.target_of(named)
    if target is None:
        raise InvalidInput(f"load request {number} does not exist: see `reside request list --all`")
    try:
        return await session.node.load_map(target)
    except ValueDeleted:
        raise InvalidInput(
            f"load request {number} is not kept any more: see the versions in `reside replica list -o json`"
        ) from None


async def _read(session: Session, value: CoMap) -> LoadRequest:
    """Read a load request.

    Raises:
        NotAllowed: this account may not read it.
    """
    try:
        return LoadRequest.model_validate(value.as_dict())
    except ValidationError:
        raise NotAllowed(
            f"the load request {value.id} can't be read by {session.credentials.account_id}: "
            f"it needs {READ_REQUESTS}, unless it made the request"
        ) from None
