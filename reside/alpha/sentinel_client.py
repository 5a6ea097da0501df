"""Alpha's interface to the Sentinel: declare stacks and candidates, read reports and preview results.

Alpha's desired stacks and candidates are maps in its own group `stacks`. The Sentinel's data names them: `desired` by
stack name, `previews` by preview key. The Sentinel may replace each of its maps.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from reside.alpha import declared_stacks
from reside.common.tracing import current
from reside.jazz import ValueDeleted
from reside.model import sentinel_data
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import InvalidInput, NotReady
from reside.model.previews import StackPreview
from reside.model.reports import StackReport
from reside.model.sentinel_data import request_of

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap, Tracker
    from reside.model.stacks import DesiredStack
    from reside.replica import Context

_MAPS = (sentinel_data.DESIRED, sentinel_data.PREVIEWS, sentinel_data.REPORTS, sentinel_data.PREVIEW_RESULTS)
_READ = ("Deployment", "Job", "Secret")
"""The kinds of which Alpha reads what is live."""


class _Keys(NamedTuple):
    """The keys of `previews` by load request, and what tells those that change."""

    map_id: str
    tracker: Tracker
    by_request: dict[int | None, set[str]]


class SentinelMaps(NamedTuple):
    """The maps of the Sentinel's data."""

    root: CoMap
    """Names the other maps, which the Sentinel may replace."""
    desired: CoMap
    previews: CoMap
    reports: CoMap
    results: CoMap


class SentinelClient:
    """Alpha's client of the Sentinel, a member of Alpha's state.

    Args:
        context: Alpha's context.
        data: Alpha's data, which holds the desired stacks.
    """

    def __init__(self, context: Context, data: AlphaData) -> None:
        self._context = context
        self._data = data
        self._keys: _Keys | None = None

    async def open(self) -> SentinelMaps:
        """Return the Sentinel's maps.

        Alpha's control block names the Sentinel, and the Sentinel's profile names its data; both may change, so each
        call reads them.

        Raises:
            NotReady: the control block names no Sentinel yet, or the Sentinel has not published its data.
        """
        peers = await self._context.peers(SENTINEL_CONTRACT)
        if not peers:
            raise NotReady("no Kubernetes Sentinel is connected: the control block of Alpha names none yet")
        root = await peers[0].data()
        missing = [member for member in _MAPS if not isinstance(root.get(member), str)]
        if missing:
            raise NotReady(f"the data of {peers[0].name} has no {', '.join(missing)} yet: it has not started")
        return SentinelMaps(root, *[await self._context.node.load_map(root[member]) for member in _MAPS])

    async def is_connected(self) -> bool:
        """Return whether the Sentinel's maps can be opened."""
        try:
            await self.open()
        except NotReady:
            return False
        return True

    async def read_desired(self, stack: str) -> DesiredStack | None:
        """Return the desired stack of this name; None if Alpha has not written it.

        Raises:
            InvalidInput: it is malformed.
        """
        return await declared_stacks.read(self._data, stack)

    async def declare(self, stack: DesiredStack) -> None:
        """Write a desired stack and name it in `desired`; an equal stack is not written again.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        maps = await self.open()
        target = await declared_stacks.write(self._data, stack)
        _name(maps.desired, stack.name, target)
        await self._data.node.flush()
        await declared_stacks.erase_replaced(self._data, stack.name)

    async def remove(self, stack: str) -> bool:
        """Remove a desired stack; return whether the Sentinel reports nothing of it any more.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        maps = await self.open()
        if stack in maps.desired:
            maps.desired.delete(stack)
        await declared_stacks.erase(self._data, stack)
        await self._data.node.flush()
        return stack not in maps.reports

    async def read_report(self, stack: str) -> StackReport:
        """Return what the Sentinel reports of a stack; an empty report if it has not reported yet.

        Raises:
            NotReady: the Sentinel's data can't be reached.
            InvalidInput: the report is malformed.
        """
        target = (await self.open()).reports.get(stack)
        if not isinstance(target, str):
            return StackReport()
        report = await self._data.node.load_map(target)
        live = {key: found for each in await self.live_maps(report) for key, found in each.as_dict().items()}
        return StackReport.parse(report.as_dict(), live)

    async def live_maps(self, report: CoMap) -> list[CoMap]:
        """Return the maps of live objects that a report names, of the kinds that Alpha reads.

        A map that the Sentinel has replaced in the meantime is missing; the report then changes.
        """
        found = []
        for kind in _READ:
            if isinstance(named := report.get(sentinel_data.live_map(kind)), str):
                with suppress(ValueDeleted):
                    found.append(await self._data.node.load_map(named))
        return found

    async def request_preview(self, key: str, candidate: DesiredStack) -> None:
        """Write a candidate and name it in `previews`; the Sentinel then writes the result.

        Raises:
            NotReady: the Sentinel's data can't be reached, or it has just replaced the map.
        """
        maps = await self.open()
        if maps.previews.get(key) not in self._own_candidates(maps.previews, key):
            maps.previews.set(
                key, self._data.stacks_group.create_map(replace(candidate, traceparent=current()).document()).id
            )
        await self._data.node.flush()
        if (await self.open()).previews.id != maps.previews.id:
            raise NotReady(f"the Sentinel has replaced its map of candidates: {key} is requested again")

    async def read_preview(self, key: str) -> StackPreview | None:
        """Return the result of a candidate; None as long as there is no valid one.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        found = (await self.open()).results.get(key)
        try:
            preview = StackPreview.parse(found)
            values = found.get(sentinel_data.VALUES) if isinstance(found, dict) else None
            if not isinstance(values, str):
                return preview
            return preview.with_values((await self._data.node.load_map(values)).as_dict())
        except (InvalidInput, ValueDeleted):
            return None

    async def is_previewed(self, key: str) -> bool:
        """Return whether a candidate of this key is named in `previews`.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        return key in (await self.open()).previews

    async def withdraw_previews(self, request: int, keep: str | None = None) -> None:
        """Remove the candidates of a load request from `previews`, except for the key `keep`, and delete them.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        previews = (await self.open()).previews
        stale = [key for key in self._keys_of(previews, request) if key != keep]
        for key in stale:
            for co_id in self._own_candidates(previews, key):
                await self._destroy(co_id)
            previews.delete(key)
        if stale:
            await self._data.node.flush()

    def _keys_of(self, previews: CoMap, request: int) -> list[str]:
        """Return the keys of a load request; only keys that have changed since the last call are read."""
        if self._keys is None or self._keys.map_id != previews.id:
            self._keys = _Keys(previews.id, previews.track(), {})
        for key in self._keys.tracker.take():
            of_request = self._keys.by_request.setdefault(request_of(key), set())
            if key in previews:
                of_request.add(key)
            else:
                of_request.discard(key)
                if not of_request:
                    del self._keys.by_request[request_of(key)]
        return sorted(self._keys.by_request.get(request, ()))

    def _own_candidates(self, previews: CoMap, key: str) -> list[str]:
        """Return the maps that Alpha itself has named under a key, the latest last: others may write there, too."""
        me = self._data.node.account_id
        return [edit.value for edit in previews.history(key) if edit.by == me and isinstance(edit.value, str)]

    async def _destroy(self, candidate: str) -> None:
        try:
            (await self._data.node.load_map(candidate)).destroy()
        except ValueDeleted:
            return


def _name(entries: CoMap, key: str, target: CoMap) -> None:
    if entries.get(key) != target.id:
        entries.set(key, target.id)
