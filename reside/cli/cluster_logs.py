"""`reside cluster logs`: what the components of a cluster wrote last, read with the credentials of the kubeconfig.

It works while Jazz, Alpha or the Sentinel do not.
"""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reside.access.client import connect
from reside.access.logs import Component, read_logs
from reside.cli import config, following, output
from reside.cli.logs import Follow, Format, Printer, Tail
from reside.cli.session import target_of
from reside.model.constants import ALPHA_NAME, ETCD_NAME, JAZZ_NAME, REPLICA_CONTAINER, REPLICA_LABEL, SENTINEL_NAME
from reside.model.errors import NotReady
from reside.model.pod_logs import PodLog, has_news

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import lightkube

    from reside.access.target import Target

LOOK_AGAIN_S: Final = 1.0
"""Seconds between two looks for something new."""


class Name(StrEnum):
    """A component of a cluster."""

    alpha = ALPHA_NAME
    sentinel = SENTINEL_NAME
    jazz = JAZZ_NAME
    etcd = ETCD_NAME


COMPONENTS: Final = {
    Name.alpha: Component({REPLICA_LABEL: ALPHA_NAME}, REPLICA_CONTAINER),
    Name.sentinel: Component({REPLICA_LABEL: SENTINEL_NAME}, REPLICA_CONTAINER),
    Name.jazz: Component({"app.kubernetes.io/name": JAZZ_NAME}, JAZZ_NAME),
    Name.etcd: Component({"app.kubernetes.io/name": ETCD_NAME}, ETCD_NAME),
}


def logs(
    components: Annotated[
        list[Name] | None, typer.Argument(metavar="[COMPONENT]...", help="alpha, kubernetes-sentinel, jazz, etcd; all.")
    ] = None,
    *,
    follow: Follow = False,
    tail: Tail = 200,
    format_: Format = output.Output.table,
    cluster_name: Annotated[
        str | None, typer.Option("--cluster", help="Cluster; that of the current context if not given.")
    ] = None,
) -> None:
    """Show what the components of a cluster wrote last. It needs a kubeconfig, and no account."""
    configuration = config.load()
    target = target_of(configuration.cluster(cluster_name or configuration.context().cluster))
    chosen = [COMPONENTS[name] for name in dict.fromkeys(components or Name)]
    asyncio.run(_show(target, chosen, tail, Printer(format_), follow=follow))


async def _show(target: Target, chosen: Sequence[Component], tail: int, printer: Printer, *, follow: bool) -> None:
    if not follow:
        async with connect(target) as client:
            found = await read_logs(client, chosen, None, tail)
        if not found:
            raise NotReady(f"namespace {target.namespace} has no pods of this cluster now: see `reside doctor`")
        printer.show(found)
        return

    async def read(since: Mapping[str, str], lines: int, wait_s: int) -> list[PodLog]:
        async with connect(target) as client:
            return await _new(client, chosen, since, lines, wait_s)

    async for found in following.follow(read, tail, output.warn):
        printer.show_more(found)


async def _new(
    client: lightkube.AsyncClient, chosen: Sequence[Component], since: Mapping[str, str], lines: int, wait_s: int
) -> list[PodLog]:
    """Return what was written after these positions; wait at most `wait_s` seconds for something."""
    until = time.monotonic() + wait_s
    while True:
        found = await read_logs(client, chosen, since, lines)
        if has_news(found, since.keys()) or time.monotonic() >= until:
            return found
        await asyncio.sleep(LOOK_AGAIN_S)
