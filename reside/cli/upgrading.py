"""`reside cluster upgrade`: show what other images change in a running cluster, and load them. All data stays."""

from __future__ import annotations

import asyncio
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from pydantic.alias_generators import to_snake

from reside.access.client import connect
from reside.cli import config, output, project
from reside.cli.cluster_options import IMAGES
from reside.cli.outages import AGAIN, leaving
from reside.cli.progress import Progress, ProgressOption, Steps, print_event, print_result
from reside.cli.prompt import confirm
from reside.cli.replicas import ReplicaView
from reside.cli.session import open_session, target_of
from reside.model.alpha_contract import CLUSTER_SETTINGS
from reside.model.constants import ALPHA_NAME, ETCD_NAME, JAZZ_NAME, SEED_NAME, SENTINEL_NAME
from reside.model.errors import InvalidInput, ResideError
from reside.seed import settings as stack_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reside.cli.replicas import Row
    from reside.cli.session import Session
    from reside.seed.release import Upgrade
    from reside.seed.settings import BootstrapSettings

_EFFECTS: Final = {
    SEED_NAME: "recorded, not started",
    ALPHA_NAME: "a new version starts, then the old one stops",
    SENTINEL_NAME: "a new version starts, then the old one stops",
    JAZZ_NAME: "restarts; what is written meanwhile waits",
    ETCD_NAME: "restarts; locks wait meanwhile",
}
_DIGEST: Final = len("sha256:") + 12


def upgrade(
    *,
    cluster_name: Annotated[
        str | None, typer.Option("--cluster", help="Cluster of the configuration; the current one if not given.")
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(help="JSON file with the digests of the release's images; that of `make up` if not given."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Upgrade without asking.")] = False,
    downgrade: Annotated[
        bool, typer.Option("--downgrade", help="Load images also if the cluster was upgraded from them before.")
    ] = False,
    format_: ProgressOption = Progress.text,
) -> None:
    """Show what the images of another release change; ask, and load them. Settings and data stay as they are."""
    project.checkout("`reside cluster upgrade`")
    configuration = config.load()
    cluster = configuration.cluster(cluster_name or configuration.context().cluster)
    found = stack_settings.read_images(images or project.state_folder() / IMAGES)
    settings, plan, rows = asyncio.run(_plan(configuration, cluster, found))
    if plan.is_empty:
        print_result(format_, f"cluster {cluster.name} has these images already", cluster=cluster.name, changed=False)
        return
    _show(plan, format_)
    if not downgrade:
        check_newer(plan, rows)
    if not (yes or asyncio.run(confirm(f"Upgrade cluster {cluster.name}?"))):
        raise ResideError("nothing was upgraded")
    with leaving(AGAIN), Steps(f"cluster {cluster.name}", format_) as steps:
        project.up(settings, cluster.name, steps.report)
    print_result(format_, f"cluster {cluster.name} is upgraded", cluster=cluster.name, changed=True)


def _show(plan: Upgrade, format_: Progress) -> None:
    if format_ is Progress.json:
        images = {name: {"now": now, "then": then} for name, (now, then) in plan.images.items()}
        print_event("plan", images=images, objects=plan.objects)
        return
    for line in lines(plan):
        output.line(line)


def lines(plan: Upgrade) -> Iterator[str]:
    """Yield what an upgrade changes, for people."""
    for name, (now, then) in plan.images.items():
        yield f"  {name}: {now[:_DIGEST]} → {then[:_DIGEST]}; {_EFFECTS[name]}"
    for key, changes in plan.objects.items():
        yield f"  {key}:"
        yield from (f"    {change}" for change in changes)
    yield "replicas keep running, and all data stays; `reside cluster backup FILE` saves it before"


def check_newer(plan: Upgrade, rows: Sequence[Row]) -> None:
    """Refuse images that the cluster has had before its present ones.

    Args:
        plan: what changes.
        rows: the replicas of the cluster, with their versions.

    Raises:
        InvalidInput: an image is that of an earlier version.
    """
    earlier = {
        (row["name"], each["digest"]) for row in rows for each in row["versions"] if each["id"] < (row["version"] or 0)
    }
    older = [name for name, (_, then) in plan.images.items() if (name, then) in earlier]
    if older:
        raise InvalidInput(
            f"the cluster was upgraded from these images of {' and '.join(older)} before, and they may not read what "
            "later ones have written: name a later release, or save the data with `reside cluster backup FILE`, and "
            "use --downgrade"
        )


def context_of(configuration: config.Config, cluster: str) -> str:
    """Return the context with which a cluster is upgraded: the current one, if it is of this cluster.

    Raises:
        InvalidInput: the cluster has none.
    """
    contexts = [each.name for each in configuration.contexts if each.cluster == cluster]
    if not contexts:
        raise InvalidInput(
            f"no context of the configuration has cluster {cluster}: get one with `reside cluster "
            f"claim-super-admin-access` or `reside cluster add {cluster}`"
        )
    return configuration.current_context if configuration.current_context in contexts else contexts[0]


async def _plan(
    configuration: config.Config, cluster: config.Cluster, images: dict[str, str]
) -> tuple[BootstrapSettings, Upgrade, list[Row]]:
    """Return the settings of a running cluster with other images, what these change, and the cluster's replicas."""
    from reside.seed import release  # noqa: PLC0415 - slow to import

    async with (
        open_session(configuration, context_of(configuration, cluster.name)) as session,
        connect(target_of(cluster)) as client,
    ):
        stored = await _stored_settings(session)
        rows = await ReplicaView(session.node, session.data).rows()
        running = {row["name"]: str(row["image"]) for row in rows} | await release.storage_images(client)
        data = {
            **stored,
            **await release.storage_settings(client),
            "namespace": cluster.namespace,
            "images": images,
            "access": cluster.access,
            "kubeconfig": cluster.kubeconfig,
            "kube_context": cluster.kube_context,
        }
        settings = stack_settings.parse(data, f"the settings of cluster {cluster.name}")
        changed = release.changed_images(running, settings)
        return settings, release.Upgrade(changed, await release.changed_objects(client, settings)), rows


async def _stored_settings(session: Session) -> dict[str, Any]:
    """Return the settings that the bootstrap stored last."""
    stored = await session.node.load_map(str(session.data[CLUSTER_SETTINGS]))
    return {to_snake(member): value for member, value in stored.as_dict().items() if value is not None}
