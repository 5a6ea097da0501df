"""`reside replica pods`: the pods of a replica, read by the Sentinel: it needs no Kubernetes here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reside.cli import listing, logs, output
from reside.cli.listing import Column, ListOptions
from reside.cli.shared_options import with_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.pod_logs import PodLog

COLUMNS = (
    Column("name"),
    Column("version", header="ver"),
    Column("phase"),
    Column("ready", short=lambda ready: "yes" if ready else "no"),
    Column("restarts", wide=True),
    Column("created", short=listing.age_of_text, header="age"),
    Column("node", wide=True),
    Column("problem"),
)


@with_options(ListOptions)
def pods(
    name: Annotated[str, typer.Argument(help="Name of the replica.")],
    *,
    options: ListOptions,
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """List the pods of a replica, the last 20. It needs the permission logs:read on kubernetes-sentinel."""
    found = asyncio.run(logs.read(context, name, 1))
    listing.show(rows(found), COLUMNS, options)
    if any(each.state is None for each in found):
        output.warn("the Sentinel is of an earlier release, and tells only the names: `reside cluster upgrade`")


def rows(found: Iterable[PodLog]) -> list[dict[str, Any]]:
    """Return the pods as rows."""
    return [{"name": each.pod, **(each.state.model_dump(mode="json") if each.state else {})} for each in found]
