"""`reside replica`: commands that change a replica that exists, each a call of one of Alpha's methods."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from reside.cli import config, output
from reside.cli.grantees import Names, read_names
from reside.cli.outages import leaving, outages_shown
from reside.cli.prompt import confirm
from reside.cli.replicas import ReplicaView
from reside.cli.session import Session, open_session
from reside.model.alpha_contract import (
    ABORT_CANARY,
    CHANGE_OWNER,
    DELETE_REPLICA,
    DISABLE_REPLICA,
    ENABLE_REPLICA,
    PLACE_REPLICA,
    PREVIEW_DELETION,
    PROMOTE_CANARY,
    REFRESH_REPLICA,
    SCALE_REPLICA,
)
from reside.model.errors import Conflict, NotReady, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

app = typer.Typer()
canary = typer.Typer(
    no_args_is_help=True, help="The version that runs beside the current one: promote, abort. `load --canary` makes it."
)
app.add_typer(canary, name="canary")

DELETED_S: Final = 300.0
"""Seconds to wait for the end of a deletion."""

Name = Annotated[str, typer.Argument(help="Name of the replica.")]
ContextName = Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")]


@app.command("enable")
def enable(name: Name, *, context: ContextName = None) -> None:
    """Start the pods of a disabled replica again."""
    _change(context, name, ENABLE_REPLICA)
    _say(f"{name} is enabled")


@app.command("disable")
def disable(name: Name, *, context: ContextName = None) -> None:
    """Stop all pods of a replica. It keeps its account, its data and its permissions."""
    _change(context, name, DISABLE_REPLICA)
    _say(f"{name} is disabled")


@app.command("place")
def place(
    name: Name,
    group: Annotated[str | None, typer.Argument(help="Placement group; the cluster's default if not given.")] = None,
    *,
    context: ContextName = None,
) -> None:
    """Run a replica on the nodes with the label reside.io/placement-group=GROUP. Its pods are replaced."""
    _change(context, name, PLACE_REPLICA, placementGroup=group)
    _say(f"{name} runs on the nodes of {f'placement group {group}' if group else 'the default placement group'}")


@app.command("scale")
def scale(
    name: Name,
    pods: Annotated[int, typer.Argument(min=1, help="Number of pods.")],
    *,
    context: ContextName = None,
) -> None:
    """Run a scalable replica with several pods."""
    _change(context, name, SCALE_REPLICA, pods=pods)
    _say(f"{name} has {pods} pod{'' if pods == 1 else 's'}")


@app.command("change-owner")
def change_owner(
    name: Name,
    owner: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Account of yours, or account id.")],
    *,
    context: ContextName = None,
) -> None:
    """Give a replica to another owner, who may enable, disable and refresh it."""

    async def run() -> None:
        async with _session(context) as (session, names):
            await session.call(CHANGE_OWNER, {"replica": names.replica(name)["id"], "owner": names.account(owner)})

    asyncio.run(run())
    _say(f"{owner} owns {name}")


@app.command("refresh")
def refresh(
    name: Name,
    *,
    auto_approve: Annotated[bool, typer.Option("--auto-approve", help="Refresh without asking.")] = False,
    context: ContextName = None,
) -> None:
    """Roll out the pod template that this version of ReSide makes. Until then a replica keeps the one it has."""

    async def run() -> bool:
        async with _session(context) as (session, names):
            row = names.replica(name)
            change = row["templateChange"]
            if change is None:
                return False
            _say(f"the pods of {name} are replaced; changed in their template:")
            for path in change["paths"]:
                _say(f"  {output.printable(path)}")
            if not (auto_approve or await confirm("Refresh?")):
                raise ResideError(f"{name} is not refreshed: nothing was changed")
            await session.call(REFRESH_REPLICA, {"replica": row["id"], "digest": change["digest"]})
            return True

    _say(f"{name} is refreshed" if asyncio.run(run()) else f"the pod template of {name} is up to date")


@canary.command("promote")
def promote(name: Name, *, context: ContextName = None) -> None:
    """Make the canary of a replica the current version. The old version serves until all pods of the new one do."""
    version = _end_canary(context, name, PROMOTE_CANARY)
    _say(f"version {version} of {name} is the current one; the version before stops when its pods are ready")


@canary.command("abort")
def abort(name: Name, *, context: ContextName = None) -> None:
    """Take the canary of a replica away, with the permissions that it alone has."""
    version = _end_canary(context, name, ABORT_CANARY)
    _say(f"version {version} of {name} is aborted")


def _end_canary(context: str | None, name: str, method: str) -> int:
    async def run() -> int:
        async with _session(context) as (session, names):
            row = names.replica(name)
            if row["canary"] is None:
                raise Conflict(f"{name} has no canary: load one with `reside replica load IMAGE --canary PERCENT`")
            await session.call(method, {"replica": row["id"], "version": row["canary"]})
            return int(row["canary"])

    return asyncio.run(run())


@app.command("delete")
def delete(
    name: Name,
    *,
    force: Annotated[bool, typer.Option("--force", help="Delete it although other replicas require it.")] = False,
    auto_approve: Annotated[bool, typer.Option("--auto-approve", help="Delete without asking.")] = False,
    context: ContextName = None,
) -> None:
    """Delete a replica: its objects, its account's permissions, its name. Show what goes, ask, and wait for the end."""

    async def run() -> None:
        async with _session(context) as (session, names):
            number = names.replica(name)["id"]
            seen = await session.call(PREVIEW_DELETION, {"replica": number})
            for line in deletion_lines(seen, names):
                _say(line)
            if seen["dependants"] and not force:
                raise Conflict(f"replica {name} is required by {_users(seen)}: delete these first, or use --force")
            if not (auto_approve or await confirm("Delete?")):
                raise ResideError(f"{name} is not deleted: nothing was changed")
            order = {"replica": number, "revision": seen["revision"], "force": force}
            with leaving(f"{name} may be deleted without this command: see `reside replica describe {name}`"):
                await session.call(DELETE_REPLICA, order)
                async with outages_shown(session):
                    await _until_deleted(session, number)

    asyncio.run(run())
    _say(f"{name} is deleted")


def deletion_lines(seen: dict[str, Any], names: Names) -> Iterator[str]:
    """Yield what a deletion removes, for people."""
    yield f"{seen['name']} and its Kubernetes objects are deleted: {', '.join(seen['objects'])}"
    for replica, contract, permission, instance in seen["holds"]:
        of = f" for {instance}" if instance else ""
        yield f"  withdrawn: {permission}{of} ({contract}) of {names.replica_name(replica)}"
    if seen["dependants"]:
        yield f"  required by {_users(seen)}"


def _users(seen: dict[str, Any]) -> str:
    return ", ".join(f"{name} ({', '.join(keys)})" for _, name, keys in seen["dependants"])


async def _until_deleted(session: Session, number: int) -> None:
    try:
        async with asyncio.timeout(DELETED_S):
            async for rows in ReplicaView(session.node, session.data).changes():
                if number not in {row["id"] for row in rows}:
                    return
    except TimeoutError:
        raise NotReady(
            f"the deletion is ordered, but not complete after {DELETED_S:.0f} s: check that the pods of Alpha and the "
            "Sentinel are ready"
        ) from None


def _change(context: str | None, name: str, method: str, **members: Any) -> None:
    async def run() -> None:
        async with _session(context) as (session, names):
            await session.call(method, {"replica": names.replica(name)["id"], **members})

    asyncio.run(run())


@asynccontextmanager
async def _session(context: str | None) -> AsyncIterator[tuple[Session, Names]]:
    async with open_session(config.load(), context) as session:
        yield session, await read_names(session)


def _say(line: str) -> None:
    output.console.print(line, highlight=False, markup=False, soft_wrap=True)
