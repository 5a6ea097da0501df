"""The context of a running replica."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.model.constants import ALPHA_CONTRACT
from reside.model.errors import NotReady
from reside.model.identities import ByContract, resolved
from reside.replica.granted import ask_and_wait
from reside.replica.peers import Caller, find_peers
from reside.replica.transactions import open_transaction

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    import httpx2

    from reside.jazz import AccountId, CoMap, Credentials, Group, Node
    from reside.locks import LockService
    from reside.replica.client import Process
    from reside.replica.control_block import ControlBlock
    from reside.replica.health import Health
    from reside.replica.peers import Peer
    from reside.replica.settings import ReplicaSettings
    from reside.replica.transactions import Transaction


@dataclass
class Context:
    """A started replica: its account, control block, locks, data and peers."""

    node: Node
    """The Jazz node, logged in with the replica's account."""
    credentials: Credentials = field(repr=False)
    """The replica's Jazz account; it makes the tokens of calls of peers."""
    settings: ReplicaSettings
    health: Health
    """The state that the probes report."""
    rcb: ControlBlock
    """The replica's own control block, live and validated."""
    locks: LockService
    public: Group
    """The group of the profile: the replica is admin, everyone is reader. It owns unique maps that others must find."""
    http: httpx2.AsyncClient
    """The client for calls of peers."""
    data: ByContract[CoMap] = field(default_factory=ByContract)
    """Contract identity → that contract's data map."""
    processes: dict[AccountId, Process] = field(default_factory=dict, repr=False)
    """Account of a peer → the process that the last call has reached (`reside.replica.client.call_method`)."""

    @property
    def name(self) -> str:
        """Name of the instance."""
        return self.settings.replica_name

    async def peers(self, contract_or_key: str) -> list[Peer]:
        """Return the replicas that serve a requirement, as the control block names them now.

        Args:
            contract_or_key: the identity of a contract (with `/`), or the key of the requirement in the manifest.

        Returns:
            peers in the order of the control block; empty if no requirement names any, for example an optional one.

        Raises:
            NotReady: a named replica has not published its profile yet.
        """
        caller = Caller(self.node, self.credentials, self.http, self.settings.access_context, self.processes)
        return await find_peers(caller, self.rcb.requirements(), resolved(contract_or_key))

    async def peer(self, contract_or_key: str) -> Peer:
        """Return the first of `peers`, for a requirement that one replica serves.

        Raises:
            NotReady: the control block names no replica now.
        """
        found = await self.peers(contract_or_key)
        if not found:
            raise NotReady(f"the control block of {self.name} names no replica for {contract_or_key} yet")
        return found[0]

    async def ask(
        self,
        peer: Peer,
        permission: str,
        instance_id: str | None = None,
        *,
        params: dict[str, Any] | None = None,
        reason: str = "",
        within_s: float | None = None,
    ) -> dict[str, Any]:
        """Ask people for a permission of a peer that the manifest does not require, and wait until they have decided.

        The manifest must require Alpha's contract. Asking again, also after a restart, continues to wait.

        Args:
            peer: the replica that would grant the permission.
            permission: name of the permission in the peer's contract.
            instance_id: id of the instance, for a permission that has instances.
            params: params to ask for.
            reason: why this replica needs the permission; people see it.
            within_s: seconds to wait; None: without limit.

        Returns:
            the params with which the permission is granted.

        Raises:
            NotAllowed: people refused or revoked it; the message has their reason.
            NotReady: nobody decided in time, or the manifest does not require Alpha's contract.
            InvalidInput: the contract has no such permission.
            Conflict: too many permissions of this replica wait for a decision.
        """
        return await ask_and_wait(
            await self.peer(ALPHA_CONTRACT),
            peer,
            permission,
            instance_id=instance_id,
            params=params or {},
            reason=reason,
            within_s=within_s,
        )

    def transaction(self, object_id: str) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction on an object: take its lock, bring values up to date, write only while the lock is held.

        See `reside.replica.transactions`.
        """
        return open_transaction(self.node, self.locks, object_id)
