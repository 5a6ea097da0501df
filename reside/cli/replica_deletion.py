"""`reside replica delete`: show what a deletion removes, ask, order it, and wait for its end.

Alpha deletes what was shown, or nothing. What a deletion removes also changes without an operator, for example when
the deployment of an old version ends. The command then previews the deletion again, and asks again only if it removes
something that was not shown.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from reside.cli import output
from reside.cli.managing import ContextName, Name, replica_session
from reside.cli.outages import leaving, outages_shown
from reside.cli.prompt import confirm
from reside.cli.replicas import ReplicaView
from reside.model.alpha_contract import DELETE_REPLICA, PREVIEW_DELETION
from reside.model.errors import Conflict, NotReady, ResideError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from reside.cli.grantees import Names
    from reside.cli.session import Session

    Preview = Mapping[str, Any]

app = typer.Typer()

PREVIEWS: Final = 5
"""Maximum number of previews, if what the deletion removes changes after each."""
DELETED_S: Final = 300.0
"""Seconds to wait for the end of a deletion."""


@app.command("delete")
def delete(
    name: Name,
    *,
    force: Annotated[bool, typer.Option("--force", help="Delete it although other replicas require it.")] = False,
    auto_approve: Annotated[bool, typer.Option("--auto-approve", help="Delete without asking.")] = False,
    context: ContextName = None,
) -> None:
    """Delete a replica: its objects, its account's permissions, its name. Show what goes, ask, and wait for the end."""
    goes_on = f"{name} may be deleted without this command: see `reside replica describe {name}`"

    async def run() -> None:
        async with replica_session(context) as (session, names):
            number = names.replica(name)["id"]

            async def preview() -> Preview:
                seen: Preview = await session.call(PREVIEW_DELETION, {"replica": number})
                return seen

            async def decide(seen: Preview) -> None:
                for line in deletion_lines(seen, names):
                    output.line(line)
                if seen["dependants"] and not force:
                    raise Conflict(f"replica {name} is required by {_users(seen)}: delete these first, or use --force")
                if not (auto_approve or await confirm("Delete?")):
                    raise ResideError(f"{name} is not deleted: nothing was changed")

            async def order(revision: str) -> None:
                with leaving(goes_on):
                    await session.call(DELETE_REPLICA, {"replica": number, "revision": revision, "force": force})

            await order_as_seen(preview, decide, order)
            with leaving(goes_on):
                async with outages_shown(session):
                    await _until_deleted(session, number)

    asyncio.run(run())
    output.line(f"{name} is deleted")


async def order_as_seen(
    preview: Callable[[], Awaitable[Preview]],
    decide: Callable[[Preview], Awaitable[None]],
    order: Callable[[str], Awaitable[None]],
) -> None:
    """Order a deletion that removes nothing that was not shown.

    Args:
        preview: returns what the deletion removes, as Alpha sees it.
        decide: shows a preview and asks for a decision; raises if the replica must not be deleted.
        order: orders the deletion with the revision of a preview.

    Raises:
        Conflict: Alpha refuses the order for another reason than its revision, or each preview differs from the last.
    """
    seen = await preview()
    await decide(seen)
    for _ in range(PREVIEWS):
        try:
            return await order(seen["revision"])
        except Conflict:
            now = await preview()
            if now["revision"] == seen["revision"]:
                raise
            if removes_more(seen, now):
                await decide(now)
            seen = now
    raise Conflict(f"{PREVIEWS} previews of the deletion differ: wait until the rollout of {seen['name']} is complete")


def removes_more(seen: Preview, now: Preview) -> bool:
    """Return whether a preview names anything that an earlier one does not. Pure."""
    return any(item not in seen[part] for part in ("objects", "holds", "dependants") for item in now[part])


def deletion_lines(seen: Preview, names: Names) -> Iterator[str]:
    """Yield what a deletion removes, for people."""
    yield f"{seen['name']} and its Kubernetes objects are deleted: {', '.join(seen['objects'])}"
    for replica, contract, permission, instance in seen["holds"]:
        of = f" for {instance}" if instance else ""
        yield f"  withdrawn: {permission}{of} ({contract}) of {names.replica_name(replica)}"
    if seen["dependants"]:
        yield f"  required by {_users(seen)}"


def _users(seen: Preview) -> str:
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
