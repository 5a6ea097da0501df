"""A running Alpha: its replica's context, its data, and the settings of its cluster."""

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
    """What every act of Alpha has at hand."""

    context: Context
    data: AlphaData
    cluster: ClusterSettings
    registry: RegistryClient
    sentinel: SentinelClient
    lease: Held | None = None
    """The leadership that the loop works under; a stack is declared anew only while it is in force."""
    registry_down_since: dict[int, float] = field(default_factory=dict)
    """Request id → the loop's time at which its registry was first found down; a new leader counts anew."""

    @property
    def node(self) -> Node:
        """Alpha's Jazz node."""
        return self.context.node

    @property
    def account(self) -> str:
        """Alpha's account."""
        return self.context.node.account_id

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Alpha's own transaction: whoever writes requests, names, ids, versions or expected permissions holds it.

        One lock for all of them, because they depend on each other: a name is free only while nobody else takes it.
        """
        return self.context.transaction(self.data.root.id)
