"""Unique values of a node: their id follows from their name and group, so every node finds or creates the same."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from reside.jazz.errors import ValueDeleted, ValueNotFound
from reside.jazz.groups.group import Group
from reside.jazz.ids import CoId, Json
from reside.jazz.node.host import NodeHost
from reside.jazz.values.cofeed import CoFeed
from reside.jazz.values.colist import CoList, appending
from reside.jazz.values.comap import CoMap, assigning
from reside.jazz.values.owned import OwnedValue
from reside.jazz.wire.header import Header, Unique, unique_header

W = TypeVar("W", bound=OwnedValue)


class UniqueValues:
    """The methods of a node that find and create unique values."""

    _host: NodeHost

    def unique_map_id(self, owner: str, unique: Unique) -> CoId:
        """Return the id of the unique map with a name in a group. Every node computes the same id."""
        return unique_header("comap", owner, unique).co_id

    async def find_unique_map(self, owner: str, unique: Unique) -> CoMap | None:
        """Load the unique map with a name in a group.

        Returns:
            the map; None if there is none, or if nobody who may write to it has done so: anyone can upload its header.

        Raises:
            ValueDeleted: it was deleted.
        """
        return await self._find_unique(unique_header("comap", owner, unique), CoMap)

    async def unique_map(self, owner: Group, unique: Unique, init: Mapping[str, Json] | None = None) -> CoMap:
        """Load the unique map with a name in a group; create it if there is none.

        Args:
            owner: the owning group.
            unique: the name: a non-empty text, or a mapping of texts to texts.
            init: the first content of a new map. If several nodes create the map concurrently, only the earliest
                content counts.

        Raises:
            ValueDeleted: it was deleted and can't be created again.
        """
        changes = assigning(init or {})
        return await self._unique(unique_header("comap", owner.id, unique), CoMap, changes)

    async def upsert_unique_map(self, owner: Group, unique: Unique, values: Mapping[str, Json]) -> CoMap:
        """Assign keys of the unique map with a name in a group; create the map if there is none.

        Other keys are kept. A key that has its value is not written again. Of several nodes that do this concurrently,
        the last writer of each key wins, also if all of them create the map.

        Raises:
            NotPermitted: this account may not write there.
            ValueDeleted: it was deleted and can't be created again.
        """
        found = await self.unique_map(owner, unique)
        found.update({key: value for key, value in values.items() if not found.has(key, value)})
        return found

    async def find_unique_list(self, owner: str, unique: Unique) -> CoList | None:
        """Load the unique list with a name in a group; see `find_unique_map`."""
        return await self._find_unique(unique_header("colist", owner, unique), CoList)

    async def unique_list(self, owner: Group, unique: Unique, items: Iterable[Json] = ()) -> CoList:
        """Load the unique list with a name in a group; create it if there is none. See `unique_map`."""
        header = unique_header("colist", owner.id, unique)
        return await self._unique(header, CoList, appending(items))

    async def upsert_unique_list(self, owner: Group, unique: Unique, items: Iterable[Json]) -> CoList:
        """Make the unique list with a name in a group equal to `items` (`CoList.apply`); create it if there is none.

        If several nodes create it concurrently, only the earliest content counts.

        Raises:
            NotPermitted: this account may not write there.
            ValueDeleted: it was deleted and can't be created again.
        """
        wanted, header = list(items), unique_header("colist", owner.id, unique)
        found = await self._find_unique(header, CoList)
        if found is None:
            return self._host.creator.unique(header, CoList, appending(wanted))
        found.apply(wanted)
        return found

    async def find_unique_feed(self, owner: str, unique: Unique) -> CoFeed | None:
        """Load the unique feed with a name in a group; see `find_unique_map`."""
        return await self._find_unique(unique_header("costream", owner, unique), CoFeed)

    async def unique_feed(self, owner: Group, unique: Unique, items: Iterable[Json] = ()) -> CoFeed:
        """Load the unique feed with a name in a group; create it if there is none. See `unique_map`."""
        return await self._unique(unique_header("costream", owner.id, unique), CoFeed, list(items))

    async def _find_unique(self, header: Header, kind: type[W]) -> W | None:
        try:
            found = await self._host.load_as(header.co_id, kind, grace=0.0)
        except ValueDeleted:
            raise
        except ValueNotFound:
            return None
        return found if found.is_initialized else None

    async def _unique(self, header: Header, kind: type[W], changes: Sequence[Json]) -> W:
        found = await self._find_unique(header, kind)
        return self._host.creator.unique(header, kind, changes) if found is None else found
