"""`reside cluster list`, `use` and `info`: the clusters of the configuration, and which one the other commands use."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from reside.cli import config, listing, output
from reside.cli.listing import Column, ListOptions
from reside.cli.shared_options import with_options

COLUMNS = (
    Column("current", short=lambda current: "*" if current else "", header=""),
    Column("name"),
    Column("cluster", wide=True),
    Column("account"),
    Column("access"),
    Column("namespace"),
    Column("endpoint"),
)


@with_options(ListOptions)
def list_clusters(*, options: ListOptions) -> None:
    """List the clusters of the configuration; `*` marks the one that commands use without `--context`."""
    empty = "no cluster: create one with `make up` or `reside cluster bootstrap`, or add one with `reside cluster add`"
    listing.show(rows(config.load()), COLUMNS, options, empty=empty)


def use(name: Annotated[str, typer.Argument(help="Name of the context, as `reside cluster list` shows it.")]) -> None:
    """Use a cluster from now on, in all commands that are not given `--context`."""
    config.change(lambda current: current.using(name))
    output.line(f"context {name} is current")


def rows(found: config.Config) -> list[dict[str, Any]]:
    """Return a row for each context: its cluster, its account, and how the cluster is reached."""
    listed = []
    for context in found.contexts:
        cluster = found.cluster(context.cluster)
        listed.append(
            {
                "current": context.name == found.current_context,
                "name": context.name,
                "cluster": context.cluster,
                "account": context.account,
                "access": cluster.access,
                "namespace": cluster.namespace,
                "endpoint": cluster.endpoint,
            }
        )
    return listed


def info(
    name: Annotated[str | None, typer.Argument(help="Cluster; that of the current context if not given.")] = None,
    format_: Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")] = (
        output.Output.table
    ),
) -> None:
    """Describe a cluster of the configuration."""
    configuration = config.load()
    cluster = configuration.cluster(name or configuration.context().cluster)
    document = cluster.model_dump(mode="json", by_alias=True, exclude_none=True)
    document["contexts"] = [c.name for c in configuration.contexts if c.cluster == cluster.name]
    document["accounts"] = sorted({c.account for c in configuration.contexts if c.cluster == cluster.name})
    document["current"] = configuration.current_context in document["contexts"]
    output.record(_flattened(document) if format_ is output.Output.table else document, format_)


def _flattened(document: dict[str, Any]) -> dict[str, Any]:
    return {k: ", ".join(v) if isinstance(v, list) else v for k, v in document.items()}
