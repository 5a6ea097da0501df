"""Indexes: maps with an entry for each of many values, which members of Alpha's root map name.

A map keeps the history of its members. So an index is replaced by a new map once most of it is history, and the map
before is deleted; the sync server then erases its content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.jazz import ValueDeleted

if TYPE_CHECKING:
    from reside.jazz import CoMap, Node

REPLACE_AFTER: Final = 100
"""Changes after which an index is replaced, and two more for each of its entries."""


async def open_index(node: Node, root: CoMap, member: str) -> CoMap:
    """Return the index that a member of the root map names."""
    while True:
        co_id = str(root[member])
        try:
            return await node.load_map(co_id)
        except ValueDeleted:  # it was replaced while it was loaded
            if root[member] == co_id:
                raise


async def shorten(node: Node, root: CoMap, member: str) -> None:
    """Replace an index whose history is long. The caller holds Alpha's lock."""
    listed = await open_index(node, root, member)
    if listed.transaction_count < REPLACE_AFTER + 2 * len(listed):
        return
    root.set(member, listed.group.create_map(listed.as_dict()).id)
    await node.flush()
    listed.destroy()
