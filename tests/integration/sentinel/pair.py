"""Alpha and the Sentinel together, both real, on a control plane."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from support.alpha_cluster import AlphaCluster, Orders, Servers, alpha_settings
from support.etcd import forget_users
from support.eventually import eventually
from support.sentinel import get, new_namespace, settings

from reside.alpha import bootstrap
from reside.alpha.app import started
from reside.jazz import Credentials
from reside.model.constants import SENTINEL_NAME
from reside.sentinel.app import Sentinel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from reside.local import ClusterInfo


@dataclass
class Pair:
    """Alpha and the Sentinel, both running, and their namespace."""

    alpha: AlphaCluster
    info: ClusterInfo
    namespace: str

    async def live(self, key: str) -> dict[str, Any] | None:
        """Return a live object."""
        return await asyncio.to_thread(get, self.info, self.namespace, key)

    async def wait(self, key: str) -> dict[str, Any]:
        """Return a live object once it exists."""
        found = await eventually(key, lambda: self.live(key), within=60)
        assert found is not None
        return found


@asynccontextmanager
async def new_pair(
    cluster: ClusterInfo, servers: Servers, folder: Path, policy: dict[str, Any] | None = None
) -> AsyncIterator[Pair]:
    """Run both in a new namespace of the cluster while the block is open, with a policy of the Sentinel."""
    namespace = await asyncio.to_thread(new_namespace, cluster)
    alpha_account, sentinel_account = Credentials.generate(), Credentials.generate()
    blocks = await bootstrap.prepare(servers.jazz.url, (servers.etcd.url,), alpha_account, sentinel_account)
    sentinel = Sentinel(
        settings(
            cluster,
            namespace,
            folder / "state",
            replica_name=SENTINEL_NAME,
            control_block_id=blocks.sentinel,
            account_id=sentinel_account.account_id,
            agent_secret=sentinel_account.agent_secret,
            sync_server_url=servers.jazz.url,
            etcd_hosts=(servers.etcd.url,),
            **({} if policy is None else {"policy": policy}),
        )
    )
    task = asyncio.create_task(sentinel.run())
    chosen = alpha_settings(servers, alpha_account, blocks.alpha).model_copy(update={"namespace": namespace})
    async with started(chosen) as alpha:
        endpoint = str(alpha.context.node.account.profile["endpoints"]["internal"])
        nothing: Any = None
        alpha_cluster = AlphaCluster(
            servers, alpha_account, sentinel_account, blocks, Orders(), nothing, alpha, endpoint
        )
        async with asyncio.timeout(60):
            await bootstrap.until_granted(alpha, blocks.sentinel)
        alpha_cluster.lead()
        try:
            yield Pair(alpha_cluster, cluster, namespace)
        finally:
            await alpha_cluster.stop_leading()
            sentinel.stop()
            await task
            await forget_users(servers.etcd, alpha_account)
