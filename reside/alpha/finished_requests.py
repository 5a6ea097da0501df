"""The finished load requests that are kept, and the deletion of older ones.

The map that the member `finishedRequests` of the root map names has an entry for each: id → `{request, of, at}`, the id
of the request's map, what it counts for, and when it finished. A load that was carried out counts for its replica, any
other request for its client. Of each replica and of each client the last ones are kept, as many as the setting
`requestHistory` says, and `TOTAL` in all. The map of an older one is deleted, and the sync server erases its content.

Invariants: a request enters this index before it leaves that of the open ones, and its map is deleted before its entry
is. So it is in one of the indexes until its map is deleted, and a leader that dies is followed by one that continues.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reside.alpha import open_requests, records
from reside.alpha.indexes import open_index, shorten
from reside.jazz import ValueDeleted, ValueNotFound
from reside.model.alpha_contract import FINISHED_REQUESTS, OPEN_REQUESTS
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reside.alpha.data import AlphaData
    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap, Tracker
    from reside.model.entities import LoadRequest

TOTAL: Final = 10_000
_AT_ONCE: Final = 50
"""How many requests are deleted, or taken over from an earlier release, under one lock."""
_REQUEST: Final = "request"
_OF: Final = "of"
_AT: Final = "at"


def counts_for(request: LoadRequest, client: str) -> str:
    """Return what a finished request of a client counts for: its replica if it was carried out, else the client. Pure.

    A request that was not carried out displaces no load of a replica, whatever replica it names.
    """
    return f"replica {request.target_replica}" if request.version is not None else f"client {client}"


class Entry(NamedTuple):
    """A finished request: when it finished (ms since the epoch), its id, and what it counts for."""

    at: int
    number: int
    of: str


class Kept:
    """The finished requests that are kept, in the order in which they finished."""

    def __init__(self) -> None:
        self._entries: dict[int, Entry] = {}
        self._all: list[Entry] = []
        self._by_of: dict[str, list[Entry]] = defaultdict(list)

    def put(self, entry: Entry) -> None:
        """Add or change a request."""
        self.drop(entry.number)
        self._entries[entry.number] = entry
        for ordered in (self._all, self._by_of[entry.of]):
            insort(ordered, entry)

    def drop(self, number: int) -> None:
        """Remove a request, if it is kept."""
        entry = self._entries.pop(number, None)
        if entry is not None:
            for ordered in (self._all, self._by_of[entry.of]):
                del ordered[bisect_left(ordered, entry)]
            if not self._by_of[entry.of]:
                del self._by_of[entry.of]

    def surplus(self, each: int, total: int, among: Iterable[str] | None = None) -> list[int]:
        """Return the requests that exceed the bounds; those that finished first come first.

        Args:
            each: how many are kept of each replica and of each client.
            total: how many are kept of all.
            among: which replicas and clients to look at; None: all.
        """
        looked_at = list(self._by_of) if among is None else among
        found = {entry for of in looked_at for entry in self._by_of.get(of, [])[:-each]}
        others = (entry for entry in self._all if entry not in found)
        found.update(islice(others, max(0, len(self._all) - len(found) - total)))
        return [entry.number for entry in sorted(found)]


class FinishedRequests:
    """The finished requests, as the leader sees them. Of the index it reads the entries that have changed."""

    def __init__(self) -> None:
        self._map_id: str | None = None
        self._tracker: Tracker | None = None
        self._kept = Kept()

    async def finish(self, alpha: Alpha, record: RequestRecord) -> bool:
        """Move a request from the open to the finished ones, and delete older ones; return whether some are left."""
        async with alpha.transaction() as tx:
            return await tx.run_exclusively(lambda: self._finish(alpha, record))

    async def tidy(self, alpha: Alpha) -> bool:
        """Take over requests of an earlier release, delete what exceeds the bounds; return whether more are left."""
        listed = [str(co_id) for co_id in alpha.data.requests.as_list()[:_AT_ONCE]]
        finished = await index(alpha.data)
        self._read(finished)
        if not listed and not self._kept.surplus(alpha.cluster.request_history, TOTAL):
            return False
        read = [await _read_unless_gone(alpha.data, co_id) for co_id in listed]

        async def write() -> bool:
            await _take_over(alpha.data, listed, [record for record in read if record is not None])
            return await self._delete_surplus(alpha, None)

        async with alpha.transaction() as tx:
            return await tx.run_exclusively(write) or bool(listed)

    async def _finish(self, alpha: Alpha, record: RequestRecord) -> bool:
        data, number = alpha.data, record.value.id
        finished = await index(data)
        if str(number) not in finished:
            finished.set(str(number), _entry(record))
        await open_requests.remove(data.node, data.root, number)
        return await self._delete_surplus(alpha, [_of(record)])

    async def _delete_surplus(self, alpha: Alpha, among: Iterable[str] | None) -> bool:
        """Delete requests beyond the bounds; return whether some are left. The caller holds Alpha's lock."""
        finished = await index(alpha.data)
        self._read(finished)
        surplus = self._kept.surplus(alpha.cluster.request_history, TOTAL, among)
        gone = [str(number) for number in surplus[:_AT_ONCE]]
        for number in gone:
            await _destroy(alpha.data, finished.get(number))
        if gone:
            await alpha.node.flush()
            finished.update({}, unset=gone)
        await shorten(alpha.node, alpha.data.root, FINISHED_REQUESTS)
        return len(surplus) > len(gone)

    def _read(self, finished: CoMap) -> None:
        if self._tracker is None or self._map_id != finished.id:
            self._map_id, self._tracker, self._kept = finished.id, finished.track(), Kept()
        for key in self._tracker.take():
            entry = finished.get(key)
            if isinstance(entry, dict):
                self._kept.put(Entry(int(entry[_AT]), int(key), str(entry[_OF])))
            else:
                self._kept.drop(int(key))


async def index(data: AlphaData) -> CoMap:
    """Return the index of finished requests."""
    return await open_index(data.node, data.root, FINISHED_REQUESTS)


async def all_requests(data: AlphaData, leave_out: Collection[str] = ()) -> list[RequestRecord]:
    """Read all requests that exist, the oldest first, except for those whose maps have these ids."""
    read = [await _read_unless_gone(data, co_id) for co_id in await all_ids(data) if co_id not in leave_out]
    return [record for record in read if record is not None]


async def all_ids(data: AlphaData) -> list[str]:
    """Return the ids of the maps of all requests that exist, the oldest first."""
    while True:
        finished, listed = await index(data), await open_requests.index(data.node, data.root)
        if (finished.id, listed.id) == (data.root[FINISHED_REQUESTS], data.root[OPEN_REQUESTS]):
            break  # neither was replaced while the other one was loaded
    found = {int(number): str(co_id) for number, co_id in listed.items()}
    found |= {int(number): str(entry[_REQUEST]) for number, entry in finished.items() if isinstance(entry, dict)}
    earlier = [str(co_id) for co_id in data.requests.as_list()]
    return list(dict.fromkeys([*earlier, *(found[number] for number in sorted(found))]))


def _entry(record: RequestRecord) -> dict[str, Any]:
    return {_REQUEST: record.map.id, _OF: _of(record), _AT: record.map.last_edited_at}


def _of(record: RequestRecord) -> str:
    return counts_for(record.value, str(record.map.get("client")))


async def _read_unless_gone(data: AlphaData, co_id: str) -> RequestRecord | None:
    try:
        return await records.read_request(data, co_id)
    except InvalidInput:  # it was deleted, or is malformed
        return None


async def _take_over(data: AlphaData, listed: list[str], read: list[RequestRecord]) -> None:
    """Move requests from the list of an earlier release into the index; the open ones are in theirs already."""
    finished = await index(data)
    entries = {str(record.value.id): _entry(record) for record in read if not record.value.is_open}
    missing = {number: entry for number, entry in entries.items() if number not in finished}
    if missing:
        finished.update(missing)
    if listed and data.requests.as_list()[: len(listed)] == listed:
        data.requests.splice(0, len(listed))


async def _destroy(data: AlphaData, entry: object) -> None:
    if isinstance(entry, dict):
        try:
            (await data.node.load_map(str(entry[_REQUEST]))).destroy()
        except (ValueDeleted, ValueNotFound):
            return
