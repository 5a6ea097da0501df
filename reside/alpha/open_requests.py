"""The index of open load requests: those that are not finished. The leader loads and watches only these.

It is a map, id → id of the request's map, that the member `openRequests` of the root map names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha.indexes import open_index, shorten
from reside.model.alpha_contract import LOAD_REQUESTS, OPEN_REQUESTS
from reside.model.entities import LoadRequest

if TYPE_CHECKING:
    from reside.jazz import CoMap, Group, Node


async def index(node: Node, root: CoMap) -> CoMap:
    """Return the index."""
    return await open_index(node, root, OPEN_REQUESTS)


async def make_index(node: Node, root: CoMap, group: Group) -> None:
    """Create the index unless it exists. In a cluster of an earlier release, it then lists the requests that are open.

    The caller holds Alpha's lock, and the list of requests exists.
    """
    if OPEN_REQUESTS in root:
        return
    requests = [await node.load_map(co_id) for co_id in (await node.load_list(root[LOAD_REQUESTS])).as_list()]
    listed = {str(value["id"]): value.id for value in requests if LoadRequest.model_validate(value.as_dict()).is_open}
    root.set(OPEN_REQUESTS, group.create_map(listed).id)


async def add(node: Node, root: CoMap, number: int, request: str) -> None:
    """List a request, whose map has the id `request`. The caller holds Alpha's lock."""
    listed = await index(node, root)
    if str(number) not in listed:
        listed.set(str(number), request)


async def remove(node: Node, root: CoMap, number: int) -> None:
    """Remove a finished request. The caller holds Alpha's lock."""
    listed = await index(node, root)
    if str(number) in listed:
        listed.delete(str(number))
    await shorten(node, root, OPEN_REQUESTS)
