"""Whether a value in Jazz was deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.jazz import CoId, ValueDeleted

if TYPE_CHECKING:
    from reside.jazz import Node


async def is_deleted(node: Node, co_id: str) -> bool:
    """Return whether a map was deleted, as this node sees it."""
    try:
        return (await node.load_map(CoId(co_id))).deleted
    except ValueDeleted:
        return True
