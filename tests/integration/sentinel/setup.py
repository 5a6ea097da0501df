"""A setup for the whole Sentinel: a control plane, a sync server, etcd, and an account that declares stacks."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.declarer import Declarer, declarer
from support.eventually import eventually
from support.replicas import AlphaDouble, Identity, Servers, run_alpha_double
from support.sentinel import settings

from reside.jazz import Credentials, Node
from reside.local import ClusterInfo
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.kinds import BY_KIND
from reside.model.permissions import Grant, PermissionRef
from reside.model.sentinel_data import CAREFUL, CONFIRM, HELD
from reside.sentinel.app import Sentinel
from reside.sentinel.settings import SentinelSettings

ALL = tuple(BY_KIND)


@dataclass
class Setup:
    """What a test of the Sentinel needs."""

    alpha_double: AlphaDouble
    identity: Identity
    settings: SentinelSettings
    namespace: str

    async def grant(self, account: str, *kinds: str, granted: bool = True) -> None:
        """Grant an account the permissions to manage these kinds, and wait until the Sentinel has granted them."""
        grant = Grant(granted=granted)
        refs = [PermissionRef(account, SENTINEL_CONTRACT, BY_KIND[kind].manage) for kind in kinds]
        for ref in refs:
            await self.alpha_double.expect(self.identity, ref, grant)
        for ref in refs:
            await self.alpha_double.until_current(self.identity, ref, grant)

    async def alpha(self) -> Declarer:
        """Return a declarer for Alpha's account, which may declare everything."""
        await self.grant(self.alpha_double.node.account_id, *ALL)
        return await declarer(self.alpha_double.node, self.identity.credentials.account_id)

    @asynccontextmanager
    async def other(self, *kinds: str) -> AsyncIterator[Declarer]:
        """Yield a declarer for another account, which may declare these kinds."""
        credentials: Credentials = await self.alpha_double.account("other")
        await self.grant(credentials.account_id, *kinds)
        async with Node(self.settings.sync_server_url, credentials) as node:
            await node.login()
            yield await declarer(node, self.identity.credentials.account_id)

    async def careful(self, value: bool) -> None:
        """Set careful mode, as the bootstrap does: with the Sentinel's own account."""
        async with Node(self.settings.sync_server_url, self.identity.credentials) as node:
            account = await node.login()
            root = await node.load_map(account.profile["contracts"][SENTINEL_CONTRACT])
            root.set(CAREFUL, value)
            await node.flush()

    @asynccontextmanager
    async def operator(self, permission: str = CONFIRM) -> AsyncIterator[Node]:
        """Yield a node of an account with a permission of operators; by default it may confirm deletions."""
        credentials: Credentials = await self.alpha_double.account("operator")
        ref, grant = PermissionRef(credentials.account_id, SENTINEL_CONTRACT, permission), Grant(granted=True)
        await self.alpha_double.expect(self.identity, ref, grant)
        await self.alpha_double.until_current(self.identity, ref, grant)
        async with Node(self.settings.sync_server_url, credentials) as node:
            await node.login()
            yield node

    async def held(self, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Wait until `holds` is true of what the Sentinel publishes as held, and return it."""
        async with Node(self.settings.sync_server_url, self.identity.credentials) as node:
            account = await node.login()
            root = await node.load_map(account.profile["contracts"][SENTINEL_CONTRACT])
            held = await node.load_map(root[HELD])
            found: dict[str, Any] = await eventually("held objects", held.as_dict, holds, within=60)
            return found

    @asynccontextmanager
    async def running(self, make: Callable[[SentinelSettings], Any] = Sentinel) -> AsyncIterator[Any]:
        """Yield a Sentinel that runs while the block is open, and is stopped gracefully."""
        sentinel = make(self.settings)
        task = asyncio.create_task(sentinel.run())
        try:
            yield sentinel
        finally:
            sentinel.stop()
            await task


@asynccontextmanager
async def new_setup(info: ClusterInfo, servers: Servers, namespace: str, folder: Path) -> AsyncIterator[Setup]:
    """Yield a setup in a namespace, with an account and a control block for a Sentinel that does not run yet."""
    async with run_alpha_double(servers) as made:
        identity = await made.identity("kubernetes-sentinel")
        chosen = settings(info, namespace, folder, **identity.settings.model_dump())
        yield Setup(made, identity, chosen, namespace)
