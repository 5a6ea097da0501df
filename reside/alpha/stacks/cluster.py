"""The settings of a cluster that every replica's objects depend on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reside.model import constants

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class ClusterSettings:
    """What render needs to know of the cluster.

    Attributes:
        namespace: the Kubernetes namespace that is the cluster.
        domain: host name under which replicas are reached from outside; None for a cluster without one.
        cluster_issuer: cert-manager's ClusterIssuer for ``domain``.
        default_placement_group: placement group of replicas that have none of their own.
        registry_mirrors: registry host → address under which Alpha reaches it.
    """

    namespace: str
    domain: str | None = None
    cluster_issuer: str | None = None
    default_placement_group: str | None = None
    registry_mirrors: Mapping[str, str] = field(default_factory=dict)
    sync_server_url: str = f"ws://jazz:{constants.JAZZ_PORT}"
    etcd_hosts: str = f"http://etcd:{constants.ETCD_PORT}"

    @property
    def external_endpoint(self) -> str | None:
        """URL under which the cluster's replicas are reached from outside."""
        return f"https://{self.domain}" if self.domain else None
