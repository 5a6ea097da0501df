"""Delete live objects that carry our label and are in no stack. Careful mode turns this off.

`reside.sentinel.term.prune_plan` decides. What it holds back is published in the Sentinel's data, logged and counted;
accounts with the permission `prune:confirm` confirm it by the uids of the objects. So a confirmation never counts for
an object that was not shown, nor for a later object of the same name.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

import structlog
from prometheus_client import Gauge

from reside.common.workqueue import WorkQueue
from reside.model.sentinel_data import CONFIRMED_UIDS, HELD_OBJECTS, HELD_REASONS
from reside.sentinel.backoff import CONNECT_BACKOFF
from reside.sentinel.contract.access import confirmed_uids
from reside.sentinel.errors import ClusterRefused
from reside.sentinel.objects.identity import split_key
from reside.sentinel.store.prune_record import PruneRecord, read_record, write_record
from reside.sentinel.term.prune_plan import WINDOW_S, PrunePlan, PruneState, plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reside.model.stacks import K8sObject
    from reside.sentinel.term.context import TermContext
    from reside.sentinel.term.reader import Reader
    from reside.sentinel.term.reporter import Reporter

_log = structlog.get_logger(__name__)

HELD = Gauge(
    "reside_sentinel_prune_held_objects",
    "Unknown objects that wait for a confirmation (`reside cluster prune`).",
)
UNACCEPTED = Gauge(
    "reside_sentinel_unaccepted_stacks",
    "Stacks that were not read and accepted; while there are any, nothing is pruned.",
)

_PAUSE_S: Final = 0.5
"""Pause in seconds before a search: many changes need only one."""
_ALL: Final = "unknown objects"
"""The queue's only key: each pass examines all objects that may be unknown."""


class Pruner:
    """Deletes unknown objects during one term.

    Args:
        context: the parts of the term.
        stacks: the queues of stacks; nothing is deleted while one is busy.
        reader: knows which stacks were accepted.
        reporter: knows the desired stacks.
    """

    def __init__(self, context: TermContext, stacks: Sequence[WorkQueue], reader: Reader, reporter: Reporter) -> None:
        self._context = context
        self._stacks = stacks
        self._reader = reader
        self._reporter = reporter
        self._record = PruneRecord(established=False)
        self._queue = WorkQueue("prune", self._prune, workers=1, backoff=CONNECT_BACKOFF)
        self.wake()
        self._suspects = set(context.guard.cache.objects)
        """Objects that may be unknown: all at first, then those of which that has become possible."""
        reporter.listen(self._object_released)
        self._unlisten = (
            context.guard.cache.listen(self._object_changed),
            context.guard.store.listen(self._object_released),
            context.data.root.on_change(lambda _: self.wake()),
            context.data.confirmed.on_change(lambda _: self.wake()),
        )

    def wake(self, after: float = _PAUSE_S) -> None:
        """Queue a search for unknown objects, in `after` seconds."""
        self._queue.add(_ALL, after)

    def close(self) -> None:
        """Unsubscribe."""
        for unlisten in self._unlisten:
            unlisten()

    def _object_changed(self, key: str, _before: K8sObject | None, live: K8sObject | None) -> None:
        """Search if an object may be unknown now; nothing becomes unknown by a change of an object of a stack."""
        if live is not None and self._is_known(key):
            return
        if live is not None:
            self._suspects.add(key)
        self.wake()

    def _object_released(self, key: str) -> None:
        if self._context.guard.cache.get(key) is not None:
            self._suspects.add(key)
            self.wake()

    async def run(self) -> None:
        """Delete unknown objects until cancelled."""
        await self._queue.run()

    async def begin(self) -> None:
        """Read the volume's record, before a stack is stored in this term.

        A volume without one is established if it has stacks, or careful mode is on. Careful mode ends by a decision
        (the hand-over of the bootstrap), and an earlier version has left no record.

        Raises:
            NotReady: the volume can't be written now; a retry may help.
        """
        guard = self._context.guard
        record = await asyncio.to_thread(read_record, guard.store.prune_record)
        if record is None:
            await self._store(PruneRecord(established=bool(guard.store.stacks) or self._is_careful()))
        else:
            self._record = record

    def _is_careful(self) -> bool:
        return self._context.data.careful or getattr(self._context.replica.settings, "careful", None) is True

    async def _prune(self, _: str) -> None:
        cache = self._context.guard.cache
        await cache.ready.wait()
        while not self._is_idle():
            for queue in self._stacks:
                await queue.wait_idle()
        unaccepted = self._reader.unaccepted()
        UNACCEPTED.set(len(unaccepted))
        if self._is_careful() or cache.is_teardown:
            self._publish((), ())
            return
        found = plan(self._state(unaccepted)) if self._any_unknown() else PrunePlan()
        self._publish(tuple(each._asdict() for each in found.held), found.reasons)
        await self._delete(found)
        if not (found.confirmed or found.allowed or found.held or unaccepted or self._record.established):
            await self._store(PruneRecord(established=True))

    def _any_unknown(self) -> bool:
        """Return whether a live object is in no stack; only then all of them are looked at."""
        cache = self._context.guard.cache
        self._suspects = {key for key in self._suspects if key in cache.objects and not self._is_known(key)}
        return bool(self._suspects)

    def _is_known(self, key: str) -> bool:
        return self._context.guard.store.holder(key) is not None or self._reporter.is_declared(key)

    def _is_idle(self) -> bool:
        return all(queue.idle for queue in self._stacks)

    async def _delete(self, found: PrunePlan) -> None:
        for unknown in (*found.confirmed, *found.allowed):
            if not self._is_idle():
                self.wake()
                return
            await self._context.lease.check()
            _log.info(
                "deleting object that is in no stack", object=unknown.object, confirmed=unknown in found.confirmed
            )
            before = self._record
            if unknown in found.allowed:  # counted first: a process that ends at each deletion deletes no more
                await self._store(PruneRecord(before.established, (*self._recent(), time.time())))
            try:
                await self._context.guard.api.delete(unknown.object, uid=unknown.uid)
            except ClusterRefused:
                await self._store(before)
                raise
        if found.confirmed and not found.held and not self._record.established:
            await self._store(PruneRecord(established=True))

    def _state(self, unaccepted: frozenset[str]) -> PruneState:
        context = self._context
        return PruneState(
            live=context.guard.cache.objects,
            known=self._known(),
            stateful_sets=tuple(self._stateful_sets()),
            unaccepted=unaccepted,
            established=self._record.established,
            recent=len(self._recent()),
            confirmed=confirmed_uids(context.data.confirmed.history(CONFIRMED_UIDS), context.rights()),
        )

    def _known(self) -> frozenset[str]:
        """Return `Kind/name` of the objects of stored and desired stacks."""
        held = (stored.held() for stored in self._context.guard.store.stacks.values())
        return frozenset().union(*held, *map(self._reporter.declared, self._reporter.desired))

    def _stateful_sets(self) -> Iterator[K8sObject]:
        """Yield the StatefulSets of stored and desired stacks."""
        for stored in self._context.guard.store.stacks.values():
            found = stored.by_key()
            yield from (found[key] for key in found if _is_stateful_set(key))
        for name, stack in self._reporter.desired.items():
            if any(map(_is_stateful_set, self._reporter.declared(name))):
                yield from (obj for obj in stack.objects if obj["kind"] == "StatefulSet")

    def _recent(self) -> tuple[float, ...]:
        """Return when objects were deleted without a confirmation, within the window."""
        now = time.time()
        return tuple(at for at in self._record.deleted if abs(now - at) < WINDOW_S)

    async def _store(self, record: PruneRecord) -> None:
        await asyncio.to_thread(write_record, self._context.guard.store.prune_record, record)
        self._record = record

    def _publish(self, objects: tuple[dict[str, str], ...], reasons: tuple[str, ...]) -> None:
        """Publish what waits for a confirmation, and why."""
        HELD.set(len(objects))
        target = self._context.data.held
        document: dict[str, Any] = {HELD_OBJECTS: list(objects), HELD_REASONS: list(reasons)}
        if target.as_dict() == document or not (objects or HELD_OBJECTS in target):
            return
        target.update(document)
        if objects:
            names = [each["object"] for each in objects]
            _log.warning("objects are in no stack; confirm with `reside cluster prune`", objects=names, reasons=reasons)


def _is_stateful_set(key: str) -> bool:
    return split_key(key)[0] == "StatefulSet"
