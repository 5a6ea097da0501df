"""Write what is live of the objects of stacks: a map for each stack and kind, which only readers of the kind can read.

The report of the stack names these maps. All that was ever written to a map stays in its log. So it is replaced after
`REPLACE_AFTER` changes, and the node may evict it between two changes (`CoMap.release`). A map is loaded again only for
a change: what it has is known by a digest. If the server has lost it, a new one is written.
"""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reside.jazz import ValueDeleted, ValueNotFound
from reside.model.kinds import KINDS
from reside.model.sentinel_data import live_map
from reside.sentinel.objects.digests import digestible
from reside.sentinel.term.reports import difference, pause_s

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reside.jazz import CoMap, Node
    from reside.model.reports import StackReport
    from reside.model.stacks import K8sObject
    from reside.sentinel.contract.data import SentinelData

REPLACE_AFTER: Final = 12
"""Number of changes of a report, or of a map of live objects, after which it gets a new map."""
_EARLIER: Final = 3
"""The last edits of a member that names a map, of which all but the present one are deleted, unless they were."""


class Written(NamedTuple):
    """What was written of the live objects of a stack.

    Attributes:
        members: the members of the report that name the maps.
        late: seconds after which the rest is due; None: there is no rest.
    """

    members: dict[str, str]
    late: float | None


class LiveMaps:
    """The maps of live objects during one term."""

    def __init__(self, node: Node, data: SentinelData) -> None:
        self._node = node
        self._data = data
        self._at: dict[str, dict[str, float]] = {}
        """Stack → object → when it was written last."""
        self._digests: dict[str, dict[str, bytes]] = {}
        """Stack → kind → digest of the map and of what it has (`_digest`)."""

    async def write(self, stack: str, report: StackReport, present: Mapping[str, Any]) -> Written:
        """Write what has changed; of one object once a second at most, unless its report changes, too.

        Args:
            stack: the name of the stack.
            report: its report.
            present: the members of its present report map.
        """
        at_once = {key for key, each in report.objects.items() if present.get(key) != each.document()}
        live = report.live_by_kind()
        members: dict[str, str] = {}
        late: list[float] = []
        digests = self._digests.setdefault(stack, {})
        for kind, objects in live.items():
            co_id = present.get(live_map(kind))
            if isinstance(co_id, str) and digests.get(kind) == _digest(co_id, objects):
                members[live_map(kind)] = co_id
                continue
            digests.pop(kind, None)
            target = await load(self._node, co_id)
            to_set, to_delete = difference({} if target is None else target.as_dict(), objects)
            waiting = {} if target is None else self._waiting(stack, target, to_set, at_once)
            late += waiting.values()
            now = {key: value for key, value in to_set.items() if key not in waiting}
            if target is None or ((now or to_delete) and target.transaction_count >= REPLACE_AFTER):
                target, now, waiting = self._data.live[kind].create_map(dict(objects)), objects, {}
                target.release()
            else:
                change(target, now, to_delete)
            members[live_map(kind)] = str(target.id)
            if not waiting:
                digests[kind] = _digest(str(target.id), objects)
            self._at.setdefault(stack, {}).update(dict.fromkeys(now, time.monotonic()))
        known = {key for objects in live.values() for key in objects}
        self._at[stack] = {key: at for key, at in self._at.get(stack, {}).items() if key in known}
        return Written(members, min(late, default=None))

    def forget(self, stack: str) -> None:
        """Forget a stack that is reported no more."""
        self._at.pop(stack, None)
        self._digests.pop(stack, None)

    def distrust(self) -> None:
        """Look at all maps again with the next write of each stack: the server may have lost some."""
        self._digests.clear()

    def _waiting(
        self, stack: str, target: CoMap, to_set: Mapping[str, K8sObject], at_once: set[str]
    ) -> dict[str, float]:
        """Return the objects that are not written yet, because they were lately; and for how many seconds more."""
        at, now = self._at.get(stack, {}), time.monotonic()
        rest = {
            key: at[key] + pause_s(target.get(key), value) - now
            for key, value in to_set.items()
            if key in at and key not in at_once
        }
        return {key: seconds for key, seconds in rest.items() if seconds > 0}


def change(target: CoMap, to_set: Mapping[str, Any], to_delete: Iterable[str]) -> None:
    """Set and delete members of a map."""
    if to_set:
        target.update(dict(to_set))
    for member in to_delete:
        target.delete(member)


async def load(node: Node, co_id: object) -> CoMap | None:
    """Return a map, and release it; None if there is none yet, or the one that is named was deleted or lost."""
    if not isinstance(co_id, str):
        return None
    try:
        found = await node.load_map(co_id, grace=0.0)  # only a Sentinel uploads it, before anything names it
    except (ValueDeleted, ValueNotFound):
        return None
    found.release()
    return found


def lately_named(report: CoMap) -> set[str]:
    """Return the ids of the maps of live objects that a report map names, and of those that it has named last."""
    edits = (edit for kind in KINDS for edit in report.history(live_map(kind.kind))[-_EARLIER:])
    return {edit.value for edit in edits if isinstance(edit.value, str)}


def _digest(co_id: str, objects: Mapping[str, Any]) -> bytes:
    """Return a digest of a map's id and content."""
    return hashlib.blake2b(digestible([co_id, objects]), digest_size=16).digest()


def named(report: CoMap | None) -> set[str]:
    """Return the ids of the maps of live objects that a report map names."""
    found = () if report is None else (report.get(live_map(kind.kind)) for kind in KINDS)
    return {co_id for co_id in found if isinstance(co_id, str)}
