"""`reside replica history`: the versions of a replica, and who loaded each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reside.cli import config, listing, output
from reside.cli.grantees import read_names
from reside.cli.listing import Column, ListOptions
from reside.cli.requests import read_clients
from reside.cli.session import open_session
from reside.cli.shared_options import with_options
from reside.model.errors import NotAllowed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.cli.grantees import Names
    from reside.cli.replicas import Row

COLUMNS = (
    Column("id", header="ver"),
    Column("current", short=lambda current: "*" if current else ""),
    Column("status"),
    Column("since", short=listing.age, header="age"),
    Column("digest", short=listing.short_digest),
    Column("image", wide=True),
    Column("request", wide=True),
    Column("by", short=listing.short_id),
    Column("reason"),
)


@with_options(ListOptions)
def history(
    name: Annotated[str, typer.Argument(help="Name of the replica.")],
    *,
    options: ListOptions,
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """List the versions of a replica, the newest first: status, age, digest, who loaded it, why it failed."""

    async def run() -> tuple[list[dict[str, Any]], str | None]:
        async with open_session(config.load(), context) as session:
            names = await read_names(session)
            row = names.replica(name)
            wanted = [version["request"] for version in row["versions"] if version["request"] is not None]
            try:
                clients, missing = await read_clients(session, wanted), None
            except NotAllowed as error:
                clients, missing = {}, f"who loaded the versions is not shown: {error}"
            return rows(row, clients, names), missing

    found, missing = asyncio.run(run())
    listing.show(found, COLUMNS, options, "id", f"{name} has no version yet")
    if missing is not None:
        output.warn(missing)


def rows(row: Row, clients: Mapping[int, str], names: Names) -> list[dict[str, Any]]:
    """Return the versions of a replica, the newest first.

    Args:
        row: the replica.
        clients: id of a load request → account that made it; requests that are not kept are absent.
        names: names of accounts.
    """
    return [
        {
            **version,
            "image": f"{row['identity']}@{version['digest']}",
            "current": version["id"] == row["version"],
            "account": (account := clients.get(version["request"])),
            "by": None if account is None else names.name_of(account),
            "reason": _reason(version),
        }
        for version in sorted(row["versions"], key=lambda version: version["id"], reverse=True)
    ]


def _reason(version: Mapping[str, Any]) -> str | None:
    """Return why a version is not what it should be: how it ended, or why it does not run."""
    why = version["reason"]
    if version["rolledBackTo"] is None:
        return f"{version['canaryPercent']} % canary" if why is None and version["canaryPercent"] is not None else why
    how = f"{'rolled back' if version['canaryPercent'] is None else 'aborted'}, version {version['rolledBackTo']} stays"
    return how if why is None else f"{how}: {why}"
