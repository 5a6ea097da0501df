"""Begin and end the Sentinel's careful mode, which is a member of its data in Jazz.

Every Sentinel reads it, so a pod that starts before the hand-over prunes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.jazz import Node
from reside.model.constants import SENTINEL_NAME
from reside.model.sentinel_data import CAREFUL, ROOT_NAME

if TYPE_CHECKING:
    from reside.jazz import CoMap, Credentials


async def begin_careful_mode(sync_server_url: str, credentials: Credentials) -> None:
    """Create the root of the Sentinel's data in careful mode, unless it exists."""
    async with Node(sync_server_url, credentials) as node:
        await _root(node)
        await node.flush()


async def end_careful_mode(sync_server_url: str, credentials: Credentials) -> None:
    """End careful mode: the Sentinel begins to prune objects that carry its label and are in no stack."""
    async with Node(sync_server_url, credentials) as node:
        root = await _root(node)
        if root.get(CAREFUL) is not False:
            root.set(CAREFUL, False)
        await node.flush()


async def _root(node: Node) -> CoMap:
    account = await node.register(SENTINEL_NAME)
    return await node.unique_map(account.profile.group, ROOT_NAME, {CAREFUL: True})
