"""Loading with everything that the sync server has at this moment, not only what it has already told us."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reside.jazz import CoMap, Node


async def load_fresh(node: Node, value_id: str) -> CoMap:
    """A map as the sync server has it now.

    Raises:
        ValueNotFound: the server does not have it.
        JazzTimeout: the server did not answer in time.
    """
    return await node.load_map(value_id)
