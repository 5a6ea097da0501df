"""`reside replica`: load images into a cluster, list its replicas, change them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from reside.cli import (
    config,
    describing,
    graph,
    history,
    loading,
    logs,
    managing,
    output,
    pods,
    replica_deletion,
    replica_list,
    requests,
)
from reside.cli.explanations import with_cure
from reside.cli.missing_grants import missing_grants_shown
from reside.cli.notices import say
from reside.cli.outages import leaving, outages_shown
from reside.cli.progress import Progress, ProgressOption, Steps, print_event, print_result
from reside.cli.prompt import confirm
from reside.cli.rendered_request import render_request
from reside.cli.replicas import ReplicaView, Row
from reside.cli.session import Session, open_session
from reside.cli.shared_options import with_options
from reside.cli.spec_options import ImageArgument, SpecOptions
from reside.model.entities import LoadRequest, LoadRequestSpec
from reside.model.errors import InvalidInput, ResideError

if TYPE_CHECKING:
    from reside.jazz import CoMap

app = typer.Typer(no_args_is_help=True)
app.add_typer(describing.app)
app.add_typer(managing.app)
app.add_typer(replica_deletion.app)
app.command("logs")(logs.logs)
app.command("pods")(pods.pods)
app.command("history")(history.history)
app.command("graph")(graph.graph)
app.command("list")(replica_list.list_replicas)

ContextName = Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")]
AutoApprove = Annotated[bool, typer.Option("--auto-approve", help="Approve without asking.")]


@app.command("load")
@with_options(SpecOptions)
def load(
    image: ImageArgument,
    *,
    options: SpecOptions,
    auto_approve: AutoApprove = False,
    context: ContextName = None,
    format_: ProgressOption = Progress.text,
) -> None:
    """Load an image: show its requirements and preview, approve it, follow it until it runs or completes."""
    row = asyncio.run(load_image(context, options.spec(image), auto_approve=auto_approve, format_=format_))
    _print_loaded(row, format_)


@app.command("rollback")
def rollback(
    name: Annotated[str, typer.Argument(help="Name of the replica.")],
    *,
    version: Annotated[int | None, typer.Option(help="Earlier version; the last healthy one if not given.")] = None,
    auto_approve: AutoApprove = False,
    context: ContextName = None,
    format_: ProgressOption = Progress.text,
) -> None:
    """Load the image of an earlier version again, as a new version: requirements and approval are as for any load."""
    _print_loaded(asyncio.run(_roll_back(context, name, version, auto_approve=auto_approve, format_=format_)), format_)


def _print_loaded(row: Row, format_: Progress) -> None:
    text = f"{row['name']} (id {row['id']}) version {row['version']} is {row['status']}"
    print_result(format_, text, **{member: row[member] for member in ("name", "id", "version", "status")})


@app.command("diff")
def diff(
    name: Annotated[str, typer.Argument(help="Name of the replica.")],
    *,
    format_: Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")] = (
        output.Output.table
    ),
    context: ContextName = None,
) -> None:
    """Show what the loads of a replica that wait for approval change in Kubernetes: live and desired, side by side."""
    asyncio.run(_diff(context, name, format_))


async def _diff(context: str | None, name: str, format_: output.Output) -> None:
    async with open_session(config.load(), context) as session:
        found = [request for request in await requests.read_all(session, every=False) if waits_for(name, request)]
    if not found:
        raise InvalidInput(f"no load of {name} waits for approval: see `reside request list`")
    requests.show_changes(found, format_)


def waits_for(name: str, request: LoadRequest) -> bool:
    """Return whether a load request would change the replica of this name, or create it, and waits for approval."""
    content = request.approve_request
    return request.status == "requires-approval" and content is not None and content.name == name


async def _roll_back(
    context: str | None, name: str, version: int | None, *, auto_approve: bool, format_: Progress
) -> Row:
    async with open_session(config.load(), context) as session:
        rows = {row["name"]: row for row in await ReplicaView(session.node, session.data).rows()}
    if name not in rows:
        raise InvalidInput(f"replica {name} does not exist: see `reside replica list`")
    spec = LoadRequestSpec(image=earlier_image(rows[name], version), replica_id=rows[name]["id"])
    return await load_image(context, spec, auto_approve=auto_approve, format_=format_)


def earlier_image(row: Row, version: int | None) -> str:
    """Return the image of an earlier version of a replica, `identity@digest`.

    Args:
        row: the replica.
        version: id of the version; None for the last one before the current that was healthy.

    Raises:
        InvalidInput: there is no such earlier version.
    """
    earlier = [v for v in row["versions"] if v["id"] < (row["version"] or 0)]
    digests = {v["id"]: v["digest"] for v in earlier}
    if not digests:
        raise InvalidInput(f"replica {row['name']} has no earlier version than {row['version']}")
    healthy = [v["id"] for v in earlier if v["wasHealthy"] and v["rolledBackTo"] is None]
    if version is None and not healthy:
        raise InvalidInput(f"no earlier version of {row['name']} was healthy: choose one with --version")
    if version is not None and version not in digests:
        known = ", ".join(str(number) for number in sorted(digests))
        raise InvalidInput(f"version {version} of {row['name']} is not an earlier one: choose from {known}")
    return f"{row['identity']}@{digests[max(healthy) if version is None else version]}"


async def load_image(
    context: str | None, spec: LoadRequestSpec, *, auto_approve: bool, format_: Progress = Progress.text
) -> Row:
    """Load an image: create a request, approve it, and follow its version until it runs or completes.

    Raises:
        InvalidInput: events are wanted for a program, and it would have to answer a question.
        ResideError: the request is refused, invalid or rejected by the operator, or the version failed.
    """
    if format_ is Progress.json and not auto_approve:
        raise InvalidInput("--output json asks no question: add --auto-approve, or use `reside request create`")
    async with open_session(config.load(), context, calls_alpha=True) as session, outages_shown(session):
        with Steps("load", format_) as steps:
            number, request = await loading.create_request(session, spec)
            steps.report(f"request {number}", "created")
            seen = await loading.wait_validated(request, lambda line: steps.report(line, ""))
        decide = partial(_decide, session, request, auto_approve, format_)
        done = await loading.approve(session, request, seen, decide, _print_message)
        row = await _follow(session, done, format_)
    version = done.version
    if row["status"] == "error":
        why = with_cure(row["reason"]) if row["reason"] else "no reason was reported"
        raise ResideError(f"version {version} of {row['name']} failed: {why}")
    return row


async def _follow(session: Session, done: LoadRequest, format_: Progress) -> Row:
    """Follow the version of an approved request until it runs or completes."""
    name, version = done.approve_request.name if done.approve_request else "", done.version or 0
    left = f"version {version} of {name} is rolled out without this command: see `reside replica describe {name}`"
    last: Row | None = None

    def report(row: Row) -> None:
        nonlocal last
        last = row
        steps.report(_progress(row), "")

    with leaving(left), Steps("load", format_) as steps:
        async with missing_grants_shown(session, _providers(done), lambda: last):
            return await loading.follow_version(session, name, version, done.health, report)


def _providers(done: LoadRequest) -> dict[int, str]:
    """Return the names of the replicas that a version may require, by id."""
    requirements = done.approve_request.requirements.values() if done.approve_request else ()
    return {choice.id: choice.name for each in requirements for choice in (*each.replicas, *each.alternatives)}


async def _decide(session: Session, request: CoMap, auto_approve: bool, format_: Progress, seen: LoadRequest) -> None:
    """Show a request; return only if it may be approved."""
    if format_ is Progress.json:
        print_event("request", request=seen.document())
    else:
        output.console.print(render_request(seen))
    if not auto_approve:
        await _ask(session, request, seen.id)


def _print_message(line: str) -> None:
    output.errors.print(f"load: {output.printable(line)}", highlight=False, markup=False, soft_wrap=True)


async def _ask(session: Session, request: CoMap, number: int) -> None:
    """Return only if the operator approves; otherwise reject the request, so that its name becomes available.

    Raises:
        ResideError: the answer is no, or there is no answer.
    """
    try:
        answer = await confirm("Approve?")
    except asyncio.CancelledError:
        await loading.reject(session, request, number, "no answer")
        say(f"load request {number} was rejected: nothing was changed")
        raise
    if not answer:
        await loading.reject(session, request, number, "no answer" if answer is None else "rejected by the operator")
    if answer is None:
        raise ResideError(
            f"load request {number} was rejected, because the input ended without an answer: use --auto-approve"
        )
    if not answer:
        raise ResideError(f"load request {number} was rejected: nothing was changed")


def _progress(row: Row) -> str:
    older = [f"version {v['id']} {v['status']}" for v in row["versions"] if v["id"] != row["version"]]
    why = f" ({output.printable(with_cure(row['reason']))})" if row["reason"] else ""
    return f"{row['name']}: " + ", ".join([f"version {row['version']} {row['status']}{why}", *older])
