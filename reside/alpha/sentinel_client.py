"""Alpha's interface to the Sentinel: declare stacks and candidates, read reports and preview results.

Alpha's desired stacks are maps in its own group `stacks`. The Sentinel's data names them: `desired` by stack name,
`previews` by preview key.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from reside.common.traceparent import TRACEPARENT
from reside.common.tracing import current
from reside.model import sentinel_data
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.errors import InvalidInput, NotReady
from reside.model.stacks import OBJECTS, DesiredStack, StackPreview, StackReport

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap
    from reside.replica import Context

_MAPS = (sentinel_data.DESIRED, sentinel_data.PREVIEWS, sentinel_data.REPORTS, sentinel_data.PREVIEW_RESULTS)


@dataclass(frozen=True)
class SentinelMaps:
    """The maps of the Sentinel's data."""

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
        return SentinelMaps(*[await self._context.node.load_map(root[member]) for member in _MAPS])

    async def read_desired(self, stack: str) -> DesiredStack | None:
        """Return the desired stack of this name; None if Alpha has not written it.

        Raises:
            InvalidInput: it is malformed.
        """
        name = sentinel_data.stack_map(stack)
        found = await self._data.node.find_unique_map(self._data.stacks_group.id, name)
        return None if found is None or OBJECTS not in found else DesiredStack.parse(found.as_dict())

    async def declare(self, stack: DesiredStack) -> None:
        """Write a desired stack and name it in `desired`; an equal stack is not written again.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        maps = await self.open()
        target = await self._write(sentinel_data.stack_map(stack.name), stack)
        _name(maps.desired, stack.name, target)
        await self._data.node.flush()

    async def remove(self, stack: str) -> bool:
        """Remove a desired stack; return whether the Sentinel reports nothing of it any more.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        maps = await self.open()
        found = await self._data.node.find_unique_map(self._data.stacks_group.id, sentinel_data.stack_map(stack))
        if stack in maps.desired:
            maps.desired.delete(stack)
        if found is not None and OBJECTS in found:  # another replica of this name starts with an empty stack
            found.delete(OBJECTS)
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
        return StackReport.parse((await self._data.node.load_map(target)).as_dict())

    async def request_preview(self, key: str, candidate: DesiredStack) -> None:
        """Write a candidate and name it in `previews`; the Sentinel then writes the result.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        maps = await self.open()
        _name(maps.previews, key, await self._write(sentinel_data.candidate_map(key), candidate))
        await self._data.node.flush()

    async def read_preview(self, key: str) -> StackPreview | None:
        """Return the result of a candidate; None as long as there is no valid one.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        found = (await self.open()).results.get(key)
        try:
            return StackPreview.parse(found)
        except InvalidInput:
            return None

    async def withdraw_previews(self, prefix: str, keep: str | None = None) -> None:
        """Remove the candidates whose keys begin with `prefix` from `previews`, except for the key `keep`.

        Raises:
            NotReady: the Sentinel's data can't be reached.
        """
        previews = (await self.open()).previews
        stale = [key for key in list(previews) if key.startswith(prefix) and key != keep]
        for key in stale:
            previews.delete(key)
        if stale:
            await self._data.node.flush()

    async def _write(self, name: str, stack: DesiredStack) -> CoMap:
        """Write a stack into Alpha's group `stacks` under a unique name, all members in one transaction.

        A stack that has changed gets the trace of this change, for the Sentinel's spans.
        """
        members = replace(stack, traceparent=current()).document()
        found = await self._data.node.unique_map(self._data.stacks_group, name, members)
        if found.get("revision") != stack.revision or found.get(OBJECTS) != members[OBJECTS]:
            found.update(members, unset=() if TRACEPARENT in members else (TRACEPARENT,))
        return found


def _name(entries: CoMap, key: str, target: CoMap) -> None:
    if entries.get(key) != target.id:
        entries.set(key, target.id)
