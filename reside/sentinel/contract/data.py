"""The Sentinel's data in Jazz (docs/architecture.md): made once, found at every later start.

Careful mode is on in new data: deleting what is unknown begins when the bootstrap says that all is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import NotReady

if TYPE_CHECKING:
    from reside.jazz import CoMap, Group
    from reside.replica import Context

ROOT_NAME: Final = "kubernetes-sentinel.v1"
CAREFUL: Final = "careful"
_MAPS: Final = {
    "declarersGroup": ("declarers", ("desired", "previews")),
    "reportsGroup": ("reports", ("reports", "previewResults")),
}


@dataclass(frozen=True)
class SentinelData:
    """Handles of the data."""

    root: CoMap
    declarers: Group
    """Owns what others write; its writers are the accounts that may declare."""
    readers: Group
    """Owns what we report; its readers are the accounts that may read or declare."""
    desired: CoMap
    previews: CoMap
    reports: CoMap
    results: CoMap

    @property
    def careful(self) -> bool:
        """Whether nothing unknown may be deleted: so it is unless the data says otherwise."""
        return self.root.get(CAREFUL) is not False


async def make_data(context: Context) -> CoMap:
    """Make what is missing, and return the root map."""
    node = context.node
    async with context.transaction(node.unique_map_id(context.public.id, ROOT_NAME)):
        root = await node.unique_map(context.public, ROOT_NAME, {CAREFUL: True})
        for member, (title, maps) in _MAPS.items():
            if member not in root:
                root.set(member, node.create_group(title).id)
            group = await node.load_group(root[member])
            for name in maps:
                if name not in root:
                    root.set(name, group.create_map().id)
        await node.flush()
    return root


async def open_data(context: Context) -> SentinelData:
    """Open the data of a started Sentinel.

    Raises:
        NotReady: it is not complete.
    """
    node, root = context.node, context.data[SENTINEL_CONTRACT]
    names = [name for member, (_, maps) in _MAPS.items() for name in (member, *maps)]
    missing = [name for name in names if not isinstance(root.get(name), str)]
    if missing:
        raise NotReady(f"the data of {context.name} lacks {', '.join(missing)}")
    return SentinelData(
        root=root,
        declarers=await node.load_group(root["declarersGroup"]),
        readers=await node.load_group(root["reportsGroup"]),
        desired=await node.load_map(root["desired"]),
        previews=await node.load_map(root["previews"]),
        reports=await node.load_map(root["reports"]),
        results=await node.load_map(root["previewResults"]),
    )
