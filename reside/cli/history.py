"""`reside replica history`: the versions of a replica, who loaded and who approved each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from reside.cli import config, listing, output
from reside.cli.grantees import read_names
from reside.cli.listing import Column, ListOptions
from reside.cli.requests import People, read_people
from reside.cli.session import open_session
from reside.cli.shared_options import with_options
from reside.model.errors import NotAllowed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.cli.grantees import Names
    from reside.cli.replicas import Row

_ACCOUNT: Final = 12
"""Letters that are shown of an account; two accounts have to fit beside the reason."""


def _short(account: str) -> str:
    return account if len(account) <= _ACCOUNT else f"{account[: _ACCOUNT - 1]}…"


COLUMNS = (
    Column("id", header="ver"),
    Column("current", header=" ", short=lambda current: "*" if current else ""),
    Column("status"),
    Column("since", short=listing.age, header="age"),
    Column("digest", short=listing.short_digest),
    Column("image", wide=True),
    Column("request", wide=True),
    Column("by", short=_short),
    Column("approvedBy", header="approved", short=_short),
    Column("reason"),
)


@with_options(ListOptions)
def history(
    name: Annotated[str, typer.Argument(help="Name of the replica.")],
    *,
    options: ListOptions,
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """List the versions of a replica, the newest first: status, age, digest, who loaded and approved it."""

    async def run() -> tuple[list[dict[str, Any]], str | None]:
        async with open_session(config.load(), context) as session:
            names = await read_names(session)
            row = names.replica(name)
            wanted = [version["request"] for version in row["versions"] if version["request"] is not None]
            try:
                people, missing = await read_people(session, wanted), None
            except NotAllowed as error:
                people, missing = {}, f"who loaded and approved the versions is not shown: {error}"
            return rows(row, people, names), missing

    found, missing = asyncio.run(run())
    listing.show(found, COLUMNS, options, "id", f"{name} has no version yet")
    if missing is not None:
        output.warn(missing)


def rows(row: Row, people: Mapping[int, People], names: Names) -> list[dict[str, Any]]:
    """Return the versions of a replica, the newest first.

    Args:
        row: the replica.
        people: id of a load request → who made and who decided it; requests that are not kept are absent.
        names: names of accounts.
    """
    return [
        {
            **version,
            "image": f"{row['identity']}@{version['digest']}",
            "current": version["id"] == row["version"],
            "account": (known := people.get(version["request"], People())).client,
            "by": _named(known.client, names),
            "approvedBy": _named(known.decided_by, names),
            "reason": _reason(version),
        }
        for version in sorted(row["versions"], key=lambda version: version["id"], reverse=True)
    ]


def _named(account: str | None, names: Names) -> str | None:
    return None if account is None else names.name_of(account)


def _reason(version: Mapping[str, Any]) -> str | None:
    """Return why a version is not what it should be: how it ended, or why it does not run."""
    why = version["reason"]
    if version["rolledBackTo"] is None:
        return f"{version['canaryPercent']} % canary" if why is None and version["canaryPercent"] is not None else why
    how = f"{'rolled back' if version['canaryPercent'] is None else 'aborted'}, version {version['rolledBackTo']} stays"
    return how if why is None else f"{how}: {why}"
