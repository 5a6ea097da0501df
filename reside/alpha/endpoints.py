"""The external endpoint of replicas: Alpha writes it into control blocks, and each replica publishes its own.

So another domain of the cluster takes effect without a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reside.alpha.granting.blocks import Blocks
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica


async def sync_endpoint(alpha: Alpha, blocks: Blocks, replica: Replica) -> None:
    """Write the external endpoint into a replica's control block, if it has another one."""
    block = await blocks.find(replica.id)
    url = alpha.cluster.external_url
    if block is None or (block.has_external_endpoint and block.external_endpoint == url):
        return
    async with alpha.transaction() as tx:
        tx.stage(lambda: block.set_external_endpoint(url))
