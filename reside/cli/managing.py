"""`reside replica`: commands that change a replica that exists, each a call of one of Alpha's methods."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reside.cli import config, output
from reside.cli.grantees import Names, read_names
from reside.cli.prompt import confirm
from reside.cli.session import Session, open_session
from reside.model.alpha_contract import (
    ABORT_CANARY,
    CHANGE_OWNER,
    DISABLE_REPLICA,
    ENABLE_REPLICA,
    PLACE_REPLICA,
    PROMOTE_CANARY,
    REFRESH_REPLICA,
    SCALE_REPLICA,
)
from reside.model.errors import Conflict, ResideError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

app = typer.Typer()
canary = typer.Typer(
    no_args_is_help=True, help="The version that runs beside the current one: promote, abort. `load --canary` makes it."
)
app.add_typer(canary, name="canary")

Name = Annotated[str, typer.Argument(help="Name of the replica.")]
ContextName = Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")]


@app.command("enable")
def enable(name: Name, *, context: ContextName = None) -> None:
    """Start the pods of a disabled replica again."""
    _change(context, name, ENABLE_REPLICA)
    output.line(f"{name} is enabled")


@app.command("disable")
def disable(name: Name, *, context: ContextName = None) -> None:
    """Stop all pods of a replica. It keeps its account, its data and its permissions."""
    _change(context, name, DISABLE_REPLICA)
    output.line(f"{name} is disabled")


@app.command("place")
def place(
    name: Name,
    group: Annotated[str | None, typer.Argument(help="Placement group; the cluster's default if not given.")] = None,
    *,
    context: ContextName = None,
) -> None:
    """Run a replica on the nodes with the label reside.io/placement-group=GROUP. Its pods are replaced."""
    _change(context, name, PLACE_REPLICA, placementGroup=group)
    output.line(f"{name} runs on the nodes of {f'placement group {group}' if group else 'the default placement group'}")


@app.command("scale")
def scale(
    name: Name,
    pods: Annotated[int, typer.Argument(min=1, help="Number of pods.")],
    *,
    context: ContextName = None,
) -> None:
    """Run a scalable replica with several pods."""
    _change(context, name, SCALE_REPLICA, pods=pods)
    output.line(f"{name} has {pods} pod{'' if pods == 1 else 's'}")


@app.command("change-owner")
def change_owner(
    name: Name,
    owner: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Account of yours, or account id.")],
    *,
    context: ContextName = None,
) -> None:
    """Give a replica to another owner, who may enable, disable and refresh it."""

    async def run() -> None:
        async with replica_session(context) as (session, names):
            await session.call(CHANGE_OWNER, {"replica": names.replica(name)["id"], "owner": names.account(owner)})

    asyncio.run(run())
    output.line(f"{owner} owns {name}")


@app.command("refresh")
def refresh(
    name: Name,
    *,
    auto_approve: Annotated[bool, typer.Option("--auto-approve", help="Refresh without asking.")] = False,
    context: ContextName = None,
) -> None:
    """Roll out the pod template that this version of ReSide makes. Until then a replica keeps the one it has."""

    async def run() -> bool:
        async with replica_session(context) as (session, names):
            row = names.replica(name)
            change = row["templateChange"]
            if change is None:
                return False
            output.line(f"the pods of {name} are replaced; changed in their template:")
            for path in change["paths"]:
                output.line(f"  {output.printable(path)}")
            if not (auto_approve or await confirm("Refresh?")):
                raise ResideError(f"{name} is not refreshed: nothing was changed")
            await session.call(REFRESH_REPLICA, {"replica": row["id"], "digest": change["digest"]})
            return True

    output.line(f"{name} is refreshed" if asyncio.run(run()) else f"the pod template of {name} is up to date")


@canary.command("promote")
def promote(name: Name, *, context: ContextName = None) -> None:
    """Make the canary of a replica the current version. The old version serves until all pods of the new one do."""
    version = _end_canary(context, name, PROMOTE_CANARY)
    output.line(f"version {version} of {name} is the current one; the version before stops when its pods are ready")


@canary.command("abort")
def abort(name: Name, *, context: ContextName = None) -> None:
    """Take the canary of a replica away, with the permissions that it alone has."""
    version = _end_canary(context, name, ABORT_CANARY)
    output.line(f"version {version} of {name} is aborted")


def _end_canary(context: str | None, name: str, method: str) -> int:
    async def run() -> int:
        async with replica_session(context) as (session, names):
            row = names.replica(name)
            if row["canary"] is None:
                raise Conflict(f"{name} has no canary: load one with `reside replica load IMAGE --canary PERCENT`")
            await session.call(method, {"replica": row["id"], "version": row["canary"]})
            return int(row["canary"])

    return asyncio.run(run())


def _change(context: str | None, name: str, method: str, **members: Any) -> None:
    async def run() -> None:
        async with replica_session(context) as (session, names):
            await session.call(method, {"replica": names.replica(name)["id"], **members})

    asyncio.run(run())


@asynccontextmanager
async def replica_session(context: str | None) -> AsyncIterator[tuple[Session, Names]]:
    """Open a session with the cluster of a context, and read the names of its replicas and accounts."""
    async with open_session(config.load(), context, calls_alpha=True) as session:
        yield session, await read_names(session)
