"""The Sentinel's data in Jazz (docs/model.md, section 3): created at the first start, and opened at later ones.

Careful mode is on in new data: the bootstrap turns it off as soon as all stacks are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reside.jazz import JazzError
from reside.model import sentinel_data as names
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import NotReady
from reside.model.kinds import KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.jazz import CoMap, Group, Node
    from reside.replica import Context

_TITLES: Final = {
    names.DECLARERS_GROUP: "declarers",
    names.REPORTS_GROUP: "reports",
    names.OPERATORS_GROUP: "operators",
} | {names.live_group(kind.kind): f"readers of {kind.plural}" for kind in KINDS}
"""Display names of the groups, for inspection tools."""


_MAPS: Final[Mapping[str, tuple[str, ...]]] = names.MAPS_BY_GROUP | {names.live_group(kind.kind): () for kind in KINDS}
"""Member of the root map that names a group → members that name the maps of this group."""
REPLACE_AFTER: Final = 200
"""Number of changes of `previews`, or of `previewResults`, after which both are replaced by empty maps."""


@dataclass
class SentinelData:
    """The Sentinel's data in Jazz, opened: the root map, the groups, the maps. `replace_previews` replaces two."""

    root: CoMap
    declarers: Group
    """Owner of what other accounts write; its writers are the accounts that may declare."""
    readers: Group
    """Owner of the reports; its readers are the accounts that may read or declare."""
    live: Mapping[str, Group]
    """Kind → owner of what is live of its objects; its readers are the accounts that may read or declare the kind."""
    operators: Group
    """Owner of the confirmations and requests of operators, who are its writers."""
    desired: CoMap
    previews: CoMap
    reports: CoMap
    results: CoMap
    held: CoMap
    confirmed: CoMap
    requests: CoMap
    answers: CoMap
    owners: CoMap

    @property
    def careful(self) -> bool:
        """Whether careful mode is on, which is the default."""
        return self.root.get(names.CAREFUL) is not False

    def owner(self, stack: str) -> str | None:
        """Return the account to which a stack was reassigned; None if it was not."""
        found = self.owners.get(stack)
        return found if isinstance(found, str) else None

    async def replace_previews(self, node: Node) -> bool:
        """Replace the maps of candidates and their results if their logs are long; return whether they were.

        Accounts whose candidates have no result request them again, as the root map names other maps.
        """
        if max(self.previews.transaction_count, self.results.transaction_count) < REPLACE_AFTER:
            return False
        before = (self.previews, self.results)
        results = [found for found in self.results.values() if isinstance(found, dict)]
        self.previews, self.results = self.declarers.create_map(), self.readers.create_map()
        self.root.update({names.PREVIEWS: self.previews.id, names.PREVIEW_RESULTS: self.results.id})
        await node.flush()
        for value in before:
            value.destroy()
        for co_id in [found[names.VALUES] for found in results if isinstance(found.get(names.VALUES), str)]:
            await destroy_map(node, co_id)
        return True


async def destroy_map(node: Node, co_id: str) -> None:
    """Delete a map of ours, unless it is deleted already or was never stored."""
    try:
        (await node.load_map(co_id)).destroy()
    except JazzError:
        return


async def make_data(context: Context) -> CoMap:
    """Create what is missing, and return the root map."""
    node = context.node
    async with context.transaction(node.unique_map_id(context.public.id, names.ROOT_NAME)):
        root = await node.unique_map(context.public, names.ROOT_NAME, {names.CAREFUL: True})
        for member, maps in _MAPS.items():
            if member not in root:
                root.set(member, node.create_group(_TITLES[member]).id)
            group = await node.load_group(root[member])
            for name in maps:
                if name not in root:
                    root.set(name, group.create_map().id)
        await node.flush()
    return root


async def open_data(context: Context) -> SentinelData:
    """Open the data of a started Sentinel.

    Raises:
        NotReady: the data is incomplete.
    """
    node, root = context.node, context.data[SENTINEL_CONTRACT]
    needed = [name for member, maps in _MAPS.items() for name in (member, *maps)]
    missing = [name for name in needed if not isinstance(root.get(name), str)]
    if missing:
        raise NotReady(f"the data of {context.name} is incomplete: {', '.join(missing)} missing; try again")
    return SentinelData(
        root=root,
        declarers=await node.load_group(root[names.DECLARERS_GROUP]),
        readers=await node.load_group(root[names.REPORTS_GROUP]),
        operators=await node.load_group(root[names.OPERATORS_GROUP]),
        live={kind.kind: await node.load_group(root[names.live_group(kind.kind)]) for kind in KINDS},
        desired=await node.load_map(root[names.DESIRED]),
        previews=await node.load_map(root[names.PREVIEWS]),
        reports=await node.load_map(root[names.REPORTS]),
        results=await node.load_map(root[names.PREVIEW_RESULTS]),
        held=await node.load_map(root[names.HELD]),
        confirmed=await node.load_map(root[names.CONFIRMED]),
        requests=await node.load_map(root[names.REQUESTS]),
        answers=await node.load_map(root[names.ANSWERS]),
        owners=await node.load_map(root[names.OWNERS]),
    )
