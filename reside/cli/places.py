"""Options that name a cluster by the configuration, or by its place in Kubernetes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from reside.access.target import Target
from reside.cli import config
from reside.cli.cluster_options import Kubeconfig, KubeContext, LocalName, connection_of, default_local
from reside.cli.session import DEADLINE, target_of


@dataclass(frozen=True)
class Place:
    """Where a cluster is."""

    cluster: Annotated[
        str | None, typer.Option(help="Cluster of the configuration; the current one if no place is given.")
    ] = None
    namespace: Annotated[str | None, typer.Option(help="Namespace, if the cluster is not in the configuration.")] = None
    kubeconfig: Kubeconfig = None
    kube_context: KubeContext = None
    local: LocalName = None

    def known(self) -> config.Cluster | None:
        """Return the cluster of the configuration; None if the options name a place.

        Raises:
            InvalidInput: the configuration does not have it.
        """
        if any(option is not None for option in (self.namespace, self.kubeconfig, self.kube_context, self.local)):
            return None
        configuration = config.load()
        return configuration.cluster(self.cluster or configuration.context().cluster)

    def target(self, default_namespace: str = "reside", deadline: float = DEADLINE) -> Target:
        """Return how the cluster is reached.

        Raises:
            InvalidInput: the configuration does not have the cluster, or it is reached by its domain alone.
        """
        cluster = self.known()
        if cluster is not None:
            found = target_of(cluster)
            return Target(found.namespace, found.access, found.kubeconfig, found.kube_context, deadline)
        local = self.local or default_local(self.kubeconfig, self.kube_context)
        connection = connection_of(local, self.kubeconfig, self.kube_context)
        return Target(self.namespace or default_namespace, deadline=deadline, **connection)
