"""`reside replica list`: list the replicas of a cluster, once or after each change."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

import typer
from rich.live import Live

from reside.cli import config, listing, output
from reside.cli.listing import ListOptions
from reside.cli.replicas import COLUMNS, ReplicaView
from reside.cli.session import open_session
from reside.cli.shared_options import with_options


@with_options(ListOptions)
def list_replicas(
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Show changes until interrupted.")] = False,
    options: ListOptions,
    context: Annotated[str | None, typer.Option("--context", help="Context; the current one if not given.")] = None,
) -> None:
    """List the replicas: id, name, version, status, age of the version, image."""
    asyncio.run(_watch(context, options) if watch else _list(context, options))


async def _list(context: str | None, options: ListOptions) -> None:
    async with open_session(config.load(), context) as session:
        rows = await ReplicaView(session.node, session.data).rows()
    listing.show(rows, COLUMNS, options)


async def _watch(context: str | None, options: ListOptions) -> None:
    async with open_session(config.load(), context) as session:
        changes = ReplicaView(session.node, session.data).changes()
        if options.format_ is listing.Format.json:
            async for rows in changes:
                output.console.out(json.dumps(rows), highlight=False)  # one line for each change
            return
        if options.format_ is not listing.Format.table or not output.console.is_terminal:
            async for rows in changes:
                listing.show(rows, COLUMNS, options)
            return
        with Live(console=output.console, auto_refresh=False) as live:
            async for rows in changes:
                live.update(listing.as_table(rows, COLUMNS, wide=options.wide), refresh=True)
