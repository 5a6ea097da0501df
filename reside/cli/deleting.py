"""`reside cluster delete`: remove a cluster, so that its namespace is as it was before."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

import typer

from reside.access.client import connect
from reside.access.objects import cluster_uid, read_secret
from reside.cli import config, output, project
from reside.cli.outages import AGAIN, leaving
from reside.cli.places import Place
from reside.cli.prompt import ask
from reside.cli.shared_options import with_options
from reside.model.constants import ACCOUNT_ID_KEY, ALPHA_NAME
from reside.model.errors import InvalidInput, ResideError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.access.target import Target

DELETE_S: Final = 300.0
"""Seconds that each wait of a deletion may take."""


@dataclass(frozen=True)
class _Present:
    """What there is to delete.

    Attributes:
        objects: `Kind/name` of each object.
        uid: unique id of the Kubernetes cluster, if it is known.
        alpha: account of the cluster's Alpha; None once its Secret is deleted.
    """

    objects: list[str]
    uid: str | None
    alpha: str | None


@with_options(Place)
def delete(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    options: Place,
) -> None:
    """Show what a cluster has in its namespace; ask, and delete all of it, with its data. The namespace stays."""
    known = options.known()
    target = options.target(deadline=DELETE_S)
    name = options.cluster or (known.name if known else target.namespace)
    named = next((each for each in config.load().clusters if each.name == options.cluster), None)
    delete_cluster(name, target, yes=yes, expected=known or named)


def delete_cluster(name: str, target: Target, *, yes: bool, expected: config.Cluster | None = None) -> None:
    """Show what a cluster has in its namespace, ask unless `yes`, delete it, and forget it on this machine.

    Args:
        name: its name in the configuration.
        target: where it is.
        yes: whether to delete without asking.
        expected: the cluster of the configuration that it must be.

    Raises:
        InvalidInput: there is nobody to ask, or another cluster is there.
        ResideError: the deletion was not confirmed.
    """
    present = asyncio.run(_look(target))
    if expected is not None and present.alpha not in (None, expected.alpha_replica_id):
        raise InvalidInput(
            f"namespace {target.namespace} has another cluster than {expected.name} of the configuration: its Alpha is "
            f"{present.alpha}, not {expected.alpha_replica_id}. Check the current context of the kubeconfig; to delete "
            f"what is there, name the place with --namespace {target.namespace}, and no --cluster"
        )
    for line in listing(target.namespace, present.objects):
        output.line(line)
    if not yes:
        confirm_name(name, "the cluster")
    from reside.seed import steps  # noqa: PLC0415 - slow to import

    with leaving(AGAIN):
        steps.delete_all(target)
    output.line(f"namespace {target.namespace} has nothing of the cluster any more")
    _forget(name, target, present)


def listing(namespace: str, found: Sequence[str]) -> list[str]:
    """Return what is deleted, for people: a line for each kind of objects, and the warning that data is lost."""
    if not found:
        return [f"namespace {namespace} has nothing of a cluster"]
    kinds: dict[str, list[str]] = {}
    for key in found:
        kind, _, name = key.partition("/")
        kinds.setdefault(kind, []).append(name)
    lines = [f"  {kind}: {', '.join(sorted(names))}" for kind, names in sorted(kinds.items())]
    volumes = ", ".join(sorted(kinds.get("PersistentVolumeClaim", ())))
    lost = [f"the data in the volumes {volumes} is lost: `reside cluster backup` saves it"] if volumes else []
    return [f"these objects of namespace {namespace} are deleted:", *lines, *lost]


async def _look(target: Target) -> _Present:
    from reside.seed import leftovers, teardown  # noqa: PLC0415 - slow to import

    async with connect(target) as client:
        found = [*await teardown.managed(client), *await leftovers.present(client)]
        alpha = await read_secret(client, ALPHA_NAME) or {}
        return _Present(sorted(set(found)), await cluster_uid(client), alpha.get(ACCOUNT_ID_KEY))


def confirm_name(name: str, what: str) -> None:
    """Ask for the name of what is deleted.

    Raises:
        InvalidInput: there is nobody to ask.
        ResideError: it was not given.
    """
    if not sys.stdin.isatty():
        raise InvalidInput("there is no terminal to confirm the deletion: use --yes")
    if ask(f"type {name} to delete {what}", "use --yes", default="", show_default=False) != name:
        raise ResideError("that is not its name: nothing is deleted")


def _forget(name: str, target: Target, deleted: _Present) -> None:
    """Remove the cluster from the configuration, and the state of its bootstrap. Accounts stay.

    Another cluster of this name stays: it may have the same namespace in another Kubernetes.
    """
    known = next((each for each in config.load().clusters if each.name == name), None)
    if known is None or not _is_same(known, target, deleted):
        return
    project.forget(name, deleted.uid, target.namespace)
    config.change(lambda current: current.without_cluster(name))
    output.line(f"cluster {name} is not in the configuration any more; accounts stay")


def _is_same(known: config.Cluster, target: Target, deleted: _Present) -> bool:
    if deleted.alpha is not None:
        return known.alpha_replica_id == deleted.alpha
    place = (target.namespace, target.kubeconfig, target.kube_context)
    return (known.namespace, known.kubeconfig, known.kube_context) == place
