"""What a running replica has at hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reside.model.errors import NotReady
from reside.replica.peers import Caller, find_peers
from reside.replica.transactions import open_transaction

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import httpx

    from reside.jazz import CoMap, Credentials, Group, Node
    from reside.locks import LockService
    from reside.replica.control_block import ControlBlock
    from reside.replica.health import Health
    from reside.replica.peers import Peer
    from reside.replica.settings import ReplicaSettings
    from reside.replica.transactions import Transaction


@dataclass
class Context:
    """A started replica: its account, its control block, its locks, its data, its peers."""

    node: Node
    """The Jazz node, logged in with the replica's account."""
    credentials: Credentials = field(repr=False)
    """The replica's Jazz account; signs calls of peers."""
    settings: ReplicaSettings
    health: Health
    """What the probes report."""
    rcb: ControlBlock
    """The own control block, live and validated."""
    locks: LockService
    public: Group
    """The group of the profile: the replica admin, everyone reader. Home of unique maps that others must find."""
    http: httpx.AsyncClient
    """The client for calls of peers."""
    data: dict[str, CoMap] = field(default_factory=dict)
    """Contract identity → that contract's data map."""

    @property
    def name(self) -> str:
        """Name of the own instance."""
        return self.settings.replica_name

    async def peers(self, contract_or_key: str) -> list[Peer]:
        """The replicas that serve a requirement, as the control block names them at this moment.

        Args:
            contract_or_key: a contract's identity (with `/`), or the key of the requirement in the own manifest.

        Returns:
            Peers in the control block's order; none while no requirement names any, as for an optional one.

        Raises:
            NotReady: a named replica has not published its profile yet.
        """
        caller = Caller(self.node, self.credentials, self.http, self.settings.access_context)
        return await find_peers(caller, self.rcb.requirements(), contract_or_key)

    async def peer(self, contract_or_key: str) -> Peer:
        """The first of `peers`, for a requirement that is served by one replica.

        Raises:
            NotReady: there is none at this moment.
        """
        found = await self.peers(contract_or_key)
        if not found:
            raise NotReady(f"{self.name} was given no replica for {contract_or_key} (yet)")
        return found[0]

    def transaction(self, object_id: str) -> AbstractAsyncContextManager[Transaction]:
        """A transaction on an object: its lock, the object afresh, staged writes made only while the lock is held.

        See `reside.replica.transactions`.
        """
        return open_transaction(self.node, self.locks, object_id)
