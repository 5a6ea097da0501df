"""The state of a running Alpha: its replica's context, its data, and the settings of its cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.registry import RegistryClient

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from reside.alpha.data import AlphaData
    from reside.alpha.sentinel_client import SentinelClient
    from reside.jazz import Node
    from reside.locks import Held
    from reside.model.cluster import ClusterSettings
    from reside.registry import Snapshot
    from reside.replica import Context
    from reside.replica.transactions import Transaction


@dataclass
class Alpha:
    """What all operations of Alpha use."""

    context: Context
    data: AlphaData
    initial: ClusterSettings
    """The settings of the cluster in Alpha's environment; they apply to what is not stored."""
    sentinel: SentinelClient
    lease: Held | None = None
    """The lease of the leader loop. A changed stack is declared only while it is held."""
    lock_users: set[str] = field(default_factory=set)
    """The users of etcd that exist, as the leader has seen them at the beginning of its term or added them."""
    registry_down_since: dict[int, float] = field(default_factory=dict)
    """Request id → time on the event loop's clock at which its registry became unavailable; empty in a new leader."""

    stored: tuple[dict[str, Any], ClusterSettings] | None = None
    """The settings that were parsed last, and what they were parsed from."""
    snapshot: Snapshot | None = None
    """What images say about themselves, in the seed on a machine that may not reach their registry."""

    @property
    def cluster(self) -> ClusterSettings:
        """The settings of the cluster, as they are stored now."""
        document = self.data.cluster_settings.as_dict()
        if self.stored is None or self.stored[0] != document:
            self.stored = document, self.initial.stored(document)
        return self.stored[1]

    @property
    def registry(self) -> RegistryClient:
        """A client for registries with the settings of the cluster."""
        cluster = self.cluster
        return RegistryClient(
            cluster.registry_mirrors,
            authorities=cluster.registry_authorities,
            locate=cluster.located,
            snapshot=self.snapshot,
        )

    @property
    def node(self) -> Node:
        """Alpha's Jazz node."""
        return self.context.node

    @property
    def account(self) -> str:
        """Alpha's account."""
        return self.context.node.account_id

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open Alpha's own transaction, for all writes of requests, names, ids, versions and expected permissions.

        They share one lock because they depend on each other: for example, a name is free only if no request holds it.
        """
        return self.context.transaction(self.data.root.id)
