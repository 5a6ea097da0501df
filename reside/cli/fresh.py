"""Options of `reside cluster bootstrap` that remove or start something before: all of it is asked for first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from reside.cli import config, deleting, starting
from reside.local import LocalCluster
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.access.target import Target
    from reside.cli.cluster_options import ClusterOptions
    from reside.seed.settings import BootstrapSettings


@dataclass(frozen=True)
class FreshOptions:
    """What is removed or started before a bootstrap."""

    create_local: Annotated[
        bool,
        typer.Option(
            "--create-local", help="Start the local cluster of --local, and build the images into its registry."
        ),
    ] = False
    delete_local: Annotated[
        bool, typer.Option("--delete-local", help="Delete the local cluster of --local before, with all that is in it.")
    ] = False
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete the cluster in the namespace before, with its data.")
    ] = False
    override: Annotated[
        bool,
        typer.Option("--override", help="Replace the cluster of this name in the configuration, which is elsewhere."),
    ] = False
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False


def prepare_local(fresh: FreshOptions, options: ClusterOptions) -> ClusterOptions:
    """Delete and start the local cluster; return the options that name it and its images.

    Raises:
        InvalidInput: the options name another cluster, or the deletion was not confirmed.
    """
    if not (fresh.create_local or fresh.delete_local):
        return options
    if options.kubeconfig is not None:
        raise InvalidInput("--create-local and --delete-local are for a local cluster: omit --kubeconfig")
    if fresh.delete_local and not fresh.create_local:
        raise InvalidInput("--delete-local leaves no Kubernetes to bootstrap in: add --create-local")
    local = options.local or "default"
    if fresh.delete_local:
        if not fresh.yes:
            deleting.confirm_name(local, f"the local Kubernetes cluster {local} and all that is in it")
        LocalCluster(local).down(delete_state=True)
    images = starting.build_images(starting.start_kubernetes(local))
    return replace(options, local=local, images=options.images or images)


def check_name(fresh: FreshOptions, name: str, settings: BootstrapSettings) -> None:
    """Refuse to replace another cluster in the configuration.

    Raises:
        InvalidInput: the configuration has another cluster of this name.
    """
    if not fresh.override:
        place = (None, settings.namespace, settings.kubeconfig, settings.kube_context)
        config.load().check_place(name, place, "choose another name, or add --override")


def clear(fresh: FreshOptions, name: str, target: Target) -> None:
    """Delete the cluster in the namespace, if that is wanted."""
    if fresh.clear:
        deleting.delete_cluster(name, target, yes=fresh.yes)
