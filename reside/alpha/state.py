"""The state of a running Alpha: its replica's context, its data, and the settings of its cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from reside.alpha.data import AlphaData
    from reside.alpha.sentinel_client import SentinelClient
    from reside.jazz import Node
    from reside.locks import Held
    from reside.model.cluster import ClusterSettings
    from reside.registry import RegistryClient
    from reside.replica import Context
    from reside.replica.transactions import Transaction


@dataclass
class Alpha:
    """What all operations of Alpha use."""

    context: Context
    data: AlphaData
    cluster: ClusterSettings
    registry: RegistryClient
    sentinel: SentinelClient
    lease: Held | None = None
    """The lease of the leader loop. A changed stack is declared only while it is held."""
    registry_down_since: dict[int, float] = field(default_factory=dict)
    """Request id → time on the event loop's clock at which its registry became unavailable; empty in a new leader."""

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
