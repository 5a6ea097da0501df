"""A cluster for tests in one process: a sync server, locks, a small Alpha, instances of replicas, and users."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2

from reside.common.tls import trusted_authorities
from reside.jazz import Node
from reside.jazz.server import SyncServer
from reside.model.errors import InvalidInput
from reside.model.permissions import Grant, PermissionRef
from reside.replica.background import in_background
from reside.replica.peers import Caller, Peer, peer_of
from reside.testing.alpha import SmallAlpha, small_alpha, until
from reside.testing.locks import MemoryEtcd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from reside.jazz import AccountId, Credentials
    from reside.replica import Context, ControlBlock, Replica
    from reside.testing.alpha import Identity


class Instance:
    """A replica with an account and a control block, which can run any number of times, also several at once.

    Attributes:
        replica: its code; replace it to run a newer version.
        identity: its account, settings and control block.
    """

    def __init__(self, replica: Replica, identity: Identity, etcd: httpx2.AsyncBaseTransport | None) -> None:
        self.replica = replica
        self.identity = identity
        self._etcd = etcd
        self._running: list[Context] = []

    @property
    def account(self) -> AccountId:
        """Id of its account."""
        return self.identity.credentials.account_id

    @property
    def name(self) -> str:
        """Name of the instance."""
        return self.identity.settings.replica_name

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Context]:
        """Run one pod while the block is open: start it, and run its `main` if it has one; then stop it.

        When the block begins, the pod has carried out what was granted before. An error of `main` cancels the block and
        is raised.
        """
        main = self.replica.declaration.main
        async with self.replica.start(self.identity.settings, etcd=self._etcd) as context:

            async def work() -> None:
                if main is not None:
                    await main(context)
                await asyncio.Event().wait()

            self._running.append(context)
            try:
                async with in_background(main=work):
                    await until(context.rcb, partial(self._is_settled, context.rcb))
                    yield context
            finally:
                self._running.remove(context)

    async def run(self) -> None:
        """Run a oneshot replica until its `main` returns."""
        async with self.replica.start(self.identity.settings, etcd=self._etcd) as context:
            if self.replica.declaration.main is not None:
                await self.replica.declaration.main(context)

    def permission(self, grantee: AccountId, name: str, instance_id: str | None, contract: str | None) -> PermissionRef:
        """Return a permission of this instance; without `contract`, of the only one that it implements.

        Raises:
            InvalidInput: the contract is not clear, or has no such permission.
        """
        contracts = self.replica.declaration.contracts
        if contract is None and len(contracts) != 1:
            raise InvalidInput(f"{self.name} implements {len(contracts)} contracts: pass the identity of one")
        ref = PermissionRef(grantee, contract or next(iter(contracts)), name, instance_id)
        if not self.replica.declaration.implements(ref):
            raise InvalidInput(f"contract {ref.contract} of {self.name} has no permission {name}")
        return ref

    def _is_settled(self, block: ControlBlock) -> bool:
        implements = self.replica.declaration.implements
        return all(found.settled for found in block.permissions() if implements(found.ref))

    async def until_carried_out(self, ref: PermissionRef, grant: Grant) -> None:
        """Wait until all pods that run have made a grant current."""

        def settled(block: ControlBlock) -> bool:
            found = block.find(ref)
            return found is not None and found.expected == grant and found.settled

        for context in self._running:
            await until(context.rcb, partial(settled, context.rcb))

    async def until_required(self, key: str, accounts: list[AccountId]) -> None:
        """Wait until all pods that run know which accounts serve a requirement."""

        def known(block: ControlBlock) -> bool:
            return block.requirements().get(key) == accounts

        for context in self._running:
            await until(context.rcb, partial(known, context.rcb))


class User:
    """An account outside of the cluster that calls replicas."""

    def __init__(self, credentials: Credentials, node: Node, http: httpx2.AsyncClient) -> None:
        self.account = credentials.account_id
        self.node = node
        self._caller = Caller(node, credentials, http, "internal")

    async def peer(self, instance: Instance, contract: str | None = None) -> Peer:
        """Return a running instance as a peer of this account; without `contract`, of the only one that it implements.

        Raises:
            NotReady: it has never run.
            InvalidInput: it implements several contracts, and none is named.
        """
        return await peer_of(self._caller, instance.account, contract)

    async def call(self, instance: Instance, method: str, body: Any, *, contract: str | None = None, **how: Any) -> Any:
        """Call a method of a running instance; `how` is as for `Peer.call`, which raises the same errors."""
        return await (await self.peer(instance, contract)).call(method, body, **how)


class Cluster:
    """Instances and users at one sync server, and the small Alpha that connects them.

    Attributes:
        alpha: the small Alpha.
    """

    def __init__(
        self, alpha: SmallAlpha, etcd: httpx2.AsyncBaseTransport | None, http: httpx2.AsyncClient, stack: AsyncExitStack
    ) -> None:
        self.alpha = alpha
        self._etcd = etcd
        self._http = http
        self._stack = stack

    async def add(self, replica: Replica, name: str) -> Instance:
        """Return a new instance of a replica; it does not run yet."""
        return Instance(replica, await self.alpha.identity(name), self._etcd)

    async def user(self, name: str = "user") -> User:
        """Return a new account without any permission."""
        credentials = await self.alpha.account(name)
        node = await self._stack.enter_async_context(Node(self.alpha.sync_server, credentials))
        await node.login()
        return User(credentials, node, self._http)

    async def connect(
        self,
        caller: Instance,
        key: str,
        *providers: Instance,
        permissions: Sequence[str] = (),
        contract: str | None = None,
    ) -> None:
        """Make instances serve a requirement of another one, and grant it permissions of all of them.

        Args:
            caller: the instance that has the requirement.
            key: the requirement's key in the manifest.
            providers: the instances that serve it.
            permissions: names of permissions without params; `grant` grants others.
            contract: as for `grant`.
        """
        block, accounts = caller.identity.rcb, [provider.account for provider in providers]
        block.set_requirements({**block.requirements(), key: accounts})
        await self.alpha.node.flush()
        await caller.until_required(key, accounts)
        for provider in providers:
            for permission in permissions:
                await self.grant(caller, provider, permission, contract=contract)

    async def grant(
        self,
        grantee: Instance | User,
        provider: Instance,
        permission: str,
        instance_id: str | None = None,
        *,
        params: dict[str, Any] | None = None,
        contract: str | None = None,
    ) -> None:
        """Grant a permission; if the provider runs, wait until it has carried that out.

        Args:
            grantee: who gets it.
            provider: the instance that has the permission in its contract.
            permission: name of the permission.
            instance_id: id of the instance, for a permission that has instances.
            params: params of the grant.
            contract: identity of the contract; None: the provider implements only one.

        Raises:
            InvalidInput: the contract is not clear, or has no such permission.
            NotReady: the provider has not carried it out in time: see its log.
        """
        ref = provider.permission(grantee.account, permission, instance_id, contract)
        await self._expect(provider, ref, Grant(granted=True, params=params or {}))

    async def revoke(
        self,
        grantee: Instance | User,
        provider: Instance,
        permission: str,
        instance_id: str | None = None,
        *,
        contract: str | None = None,
    ) -> None:
        """Revoke a permission; the arguments and errors are those of `grant`."""
        ref = provider.permission(grantee.account, permission, instance_id, contract)
        await self._expect(provider, ref, Grant(granted=False))

    async def _expect(self, provider: Instance, ref: PermissionRef, grant: Grant) -> None:
        await self.alpha.expect(provider.identity, ref, grant)
        await provider.until_carried_out(ref, grant)


@asynccontextmanager
async def cluster(*, sync_server: str | None = None, etcd_hosts: Sequence[str] = ()) -> AsyncIterator[Cluster]:
    """Run a cluster while the block is open.

    Args:
        sync_server: address of a running sync server; None: run that of `reside.jazz.server`, in memory.
        etcd_hosts: addresses of a running etcd without users; without one, locks are in memory.
    """
    async with AsyncExitStack() as stack:
        if sync_server is None:
            sync_server = (await stack.enter_async_context(SyncServer())).url
        etcd = None if etcd_hosts else MemoryEtcd()
        alpha = await stack.enter_async_context(small_alpha(sync_server, etcd_hosts or ["http://in-memory"]))
        http = await stack.enter_async_context(httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False))
        yield Cluster(alpha, etcd, http, stack)
