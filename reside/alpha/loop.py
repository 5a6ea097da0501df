"""The leader loop: watch everything that Alpha's work depends on, and handle changes by key.

Keys: `scan` (the lists), `sentinel` (its reports), `settings` (of the cluster), `replica/<id>`, `deletion/<CoId>` (of a
replica), `account/<id>` (the direct grants of a person), `first` (the replicas that existed at the start), `finished`
(the finished requests), and in a queue of its own `request/<id>`, so that a slow registry delays no rollout. One Alpha
of a cluster leads. It starts by handling everything, so it continues what its predecessor did not complete; changes
don't wait for that. Of a map with many members it reads those that have changed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from reside.alpha import open_requests, previews, records
from reside.alpha.finished_requests import FinishedRequests
from reside.alpha.following import Changes, FirstPasses
from reside.alpha.granting.blocks import Blocks
from reside.alpha.granting.sync import Grantee, sync_grants
from reside.alpha.loading import again
from reside.alpha.loading.expiry import expire, expires_in
from reside.alpha.loading.validate import validate
from reside.alpha.lock_access import leadership
from reside.alpha.managing.deleting import delete_replica
from reside.alpha.metrics import OpenRequests, leading
from reside.alpha.records import RequestGone
from reside.alpha.rollouts import reconcile_replica
from reside.alpha.versions import create_version
from reside.common import tracing
from reside.common.backoff import DEFAULT
from reside.common.workqueue import WorkQueue
from reside.jazz import fenced_writes
from reside.model.alpha_contract import DEPENDANTS_LISTED
from reside.model.sentinel_data import request_of
from reside.replica.background import in_background

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from reside.alpha.records import ReplicaRecord, RequestRecord
    from reside.alpha.sentinel_client import SentinelMaps
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap, Value
    from reside.locks import Held
    from reside.model.entities import LoadRequest

_log = structlog.get_logger(__name__)
SCAN, SENTINEL, SETTINGS, DELETION, FIRST = "scan", "sentinel", "settings", "deletion", "first"
FINISHED = "finished"
WORKERS: Final = 4
_ENTRY_PAUSE_S: Final = 0.5
"""Pause before a changed entry of a control block is looked at. A replica can change its own entries in a loop."""
_LONGEST_PAUSE_S: Final = 3600.0
"""Timers don't run while the machine sleeps, so an expiry is computed again from the clock at least so often."""
REQUEST_WORKERS: Final = 16
"""Requests that are handled side by side; so many registries must be slow before others wait."""


class Loop:
    """One term of leadership."""

    def __init__(self, alpha: Alpha) -> None:
        self._alpha = alpha
        self._queue = WorkQueue("alpha", self._handle, workers=WORKERS, backoff=DEFAULT)
        self._requests = WorkQueue("requests", self._request, workers=REQUEST_WORKERS, backoff=DEFAULT)
        self._subscriptions: dict[str, Callable[[], None]] = {}
        self._open: set[int] = set()
        self._previewed: set[int] = set()
        """Requests that require approval: the Sentinel keeps their previews current."""
        self._deleting: set[int] = set()
        self._stacks: dict[str, int] = {}
        self._reports: dict[str, list[CoMap]] = {}
        self._blocks = Blocks(alpha.data, self._grantee_changed)
        self._index: CoMap | None = None
        self._counted = OpenRequests()
        self._changes = Changes()
        self._first = FirstPasses(self._changes.of(alpha.data.replicas))
        self._finished = FinishedRequests()
        self._sentinel: SentinelMaps | None = None

    async def run(self) -> None:
        """Handle everything that exists and every change, until cancelled or until an error."""
        data = self._alpha.data
        for values in (data.root, data.replicas, data.direct_grants):
            self._watch(values, SCAN)
        self._watch(data.cluster_settings, SETTINGS)
        for key in (SCAN, SENTINEL, FIRST, FINISHED):
            self._queue.add(key)
        try:
            with leading(alpha=self._queue, requests=self._requests) as self._counted:
                async with in_background(requests=self._requests.run):
                    await self._queue.run()
        finally:
            for unsubscribe in self._subscriptions.values():
                unsubscribe()
            self._subscriptions.clear()
            self._blocks.close()

    async def _handle(self, key: str) -> None:
        kind, _, number = key.partition("/")
        if kind == SCAN:
            await self._scan()
        elif kind == SENTINEL:
            await self._follow_sentinel()
        elif kind == FIRST:
            await self._first_passes()
        elif kind == SETTINGS:
            self._first.repeat(self._stacks.values())
            self._queue.add(FIRST)
            self._queue.add(FINISHED)
        elif kind == FINISHED:
            if await self._finished.tidy(self._alpha):
                self._queue.add(FINISHED)
        elif kind == DELETION:
            await self._delete(await records.read_active(self._alpha.data, number))
        elif kind == "account":
            await sync_grants(self._alpha, self._blocks, Grantee(number))
        else:
            await self._pass(int(number))

    async def _pass(self, number: int) -> None:
        """Handle the present state of a replica."""
        succeeded = False
        try:
            record = await records.find_active(self._alpha.data, number)
            if record is not None:
                if await self._alpha.sentinel.is_connected():  # if not, the pass may write what connects it
                    await self._watch_report(record.value.name)
                await (self._reconcile if record.value.deletion is None else self._delete)(record)
            succeeded = True
        finally:
            if self._first.ended(number, succeeded=succeeded):
                self._queue.add(FIRST)

    async def _reconcile(self, record: ReplicaRecord) -> None:
        pause = await reconcile_replica(self._alpha, self._blocks, record)
        await self._resolve_again(record.value.id)
        if pause is not None:
            self._queue.add(f"replica/{record.value.id}", after=min(pause, _LONGEST_PAUSE_S))

    async def _delete(self, record: ReplicaRecord) -> None:
        """Carry a deletion on; it goes on when the Sentinel's reports change."""
        self._deleting.add(record.value.id)
        if await delete_replica(self._alpha, self._blocks, record):
            self._deleting.discard(record.value.id)
            self._stacks.pop(record.value.name, None)
            self._unwatch(record.map)
            self._unwatch(record.management)
            for value in self._reports.pop(record.value.name, ()):
                self._unwatch(value)

    async def _first_passes(self) -> None:
        """Follow the replicas that existed at the start of the term, then begin passes over them.

        It begins a few, and the next ones when these have ended. So what changes meanwhile is handled at once.
        """
        followed = self._first.next_to_follow()
        if followed:
            for replica in await asyncio.gather(*(records.read_outline(self._alpha.data, co_id) for co_id in followed)):
                self._first.add(replica.value.id)
                self._follow_replica(replica)
            self._queue.add(FIRST)
        for number in self._first.next_to_pass() if not followed else ():
            self._queue.add(f"replica/{number}")
        if not self._first.is_over or self._first.unfinished or self._alpha.data.root.get(DEPENDANTS_LISTED) is True:
            return
        async with self._alpha.transaction() as tx:  # each replica has been indexed by its pass
            tx.stage(lambda: self._alpha.data.root.set(DEPENDANTS_LISTED, True))

    async def _scan(self) -> None:
        """Watch and handle the direct grants, open requests and new replicas that are not watched yet."""
        data = self._alpha.data
        for account in self._changes.of(data.direct_grants):
            co_id = data.direct_grants.get(account)
            if isinstance(co_id, str) and co_id not in self._subscriptions:
                self._watch(await data.node.load_map(co_id), self._key_of(account))
                self._add(self._key_of(account))
        listed = await open_requests.index(data.node, data.root)
        if self._watch(listed, SCAN) and self._index is not None:
            self._changes.forget(self._index)
            self._unwatch(self._index)
        self._index = listed
        for number in self._changes.of(listed):
            co_id = listed.get(number)
            if isinstance(co_id, str) and co_id not in self._subscriptions:
                self._watch(await data.node.load_map(co_id), f"request/{number}")
                self._add(f"request/{number}")
        for co_id in self._changes.of(data.replicas):
            if co_id not in self._subscriptions:
                replica = await records.read_outline(data, co_id)
                self._follow_replica(replica)
                self._queue.add(f"replica/{replica.value.id}")

    def _follow_replica(self, replica: ReplicaRecord) -> None:
        if replica.value.deletion is not None:  # its look-up by id may be gone already
            self._queue.add(f"{DELETION}/{replica.map.id}")
        key = f"replica/{replica.value.id}"
        self._stacks[replica.value.name] = replica.value.id
        self._watch(replica.map, key)
        self._watch(replica.management, key)

    async def _resolve_again(self, number: int) -> None:
        """Watch the providers of the open requirements of a replica, and request a load if they resolve to others."""
        record = await records.find_active(self._alpha.data, number)
        if record is not None:
            for listed in await again.look_ups(self._alpha, record.value):
                self._watch_also(listed, f"replica/{number}")
            await again.request_again(self._alpha, record.value)

    async def _follow_sentinel(self) -> None:
        """Handle the replicas and requests whose reports and previews have come, gone, or been replaced."""
        maps = await self._alpha.sentinel.open()
        are_new = self._sentinel is None or self._sentinel.previews.id != maps.previews.id
        self._use(maps)
        for stack in self._changes.of(maps.reports):
            number = self._stacks.get(stack)
            if number is None or self._first.waits(number):
                continue
            if number in self._deleting or await self._watch_report(stack):
                self._queue.add(f"replica/{number}")
        changed = {request_of(key) for key in self._changes.of(maps.results)}
        for number in self._open | self._previewed if are_new else self._open & changed:
            self._add(f"request/{number}")

    def _use(self, maps: SentinelMaps) -> None:
        """Watch the Sentinel's maps, and no longer those that it has replaced."""
        for old, new in zip(self._sentinel or maps, maps, strict=True):
            if old.id != new.id:
                self._unwatch(old)
                self._changes.forget(old)
        self._sentinel = maps
        for values in (maps.root, maps.reports, maps.results):
            self._watch(values, SENTINEL)

    async def _watch_report(self, stack: str) -> bool:
        """Watch the report of a replica's stack, if there is one; return whether it has other maps than before."""
        target = (await self._alpha.sentinel.open()).reports.get(stack)
        if stack not in self._stacks or not isinstance(target, str):
            return False
        key, before = f"replica/{self._stacks[stack]}", self._reports.get(stack, [])
        report = await self._alpha.node.load_map(target)
        self._watch(report, key)  # before its maps are loaded, because it may name others then
        self._reports[stack] = found = [report, *await self._alpha.sentinel.live_maps(report)]
        for value in found[1:]:
            self._watch(value, key)
        for value in before:
            if value not in found:
                self._unwatch(value)
        return found != before

    async def _request(self, key: str) -> None:
        number = int(key.partition("/")[2])
        try:
            record = await records.find_request(self._alpha.data, number)
        except RequestGone:
            return
        if await self._expire(key, record):
            record = await records.find_request(self._alpha.data, number)
        request = record.value
        self._counted.note(number, request.status if request.is_open else None)
        self._previewed.discard(number)
        if request.status == "validating":
            self._open.add(number)
            with _step("validate a load request", request):
                await validate(self._alpha, number)
            return
        self._open.discard(number)
        if request.status == "requires-approval":
            self._previewed.add(number)
            await previews.keep(self._alpha, request)
        if request.status == "approved" and request.version is None:
            with _step("create a version", request):
                await create_version(self._alpha, number)
            request = (await records.find_request(self._alpha.data, number)).value
            if request.target_replica is not None:
                self._queue.add(f"replica/{request.target_replica}")
        if not request.is_open:
            await self._finish(number)

    async def _expire(self, key: str, record: RequestRecord) -> bool:
        """Expire a request that is due, or handle it again when it will be; return whether it has expired."""
        seconds = expires_in(self._alpha, record)
        if seconds:
            self._requests.add(key, after=min(seconds, _LONGEST_PAUSE_S))
        if seconds == 0:
            await expire(self._alpha, record.value.id)
        return seconds == 0

    async def _finish(self, number: int) -> None:
        """Release what a finished request holds: its previews, its place in the index, its subscription."""
        self._counted.note(number, None)
        await previews.withdraw(self._alpha, number)
        record = await records.find_request(self._alpha.data, number)
        if await self._finished.finish(self._alpha, record):
            self._queue.add(FINISHED)
        self._unwatch(record.map)
        for waiting in self._open:  # one of them may wait for the turn of this request
            self._add(f"request/{waiting}")

    def _add(self, key: str) -> None:
        (self._requests if key.startswith("request/") else self._queue).add(key)

    def _changed(self, key: str, _value: Value) -> None:
        self._add(key)

    def _grantee_changed(self, account: str) -> None:
        self._queue.add(self._key_of(account), after=_ENTRY_PAUSE_S)

    def _key_of(self, account: str) -> str:
        """Return the key for the grants of an account."""
        number = self._alpha.data.replicas_by_account.get(account)
        return f"account/{account}" if number is None else f"replica/{number}"

    def _watch_also(self, value: Value, key: str) -> None:
        """Handle `key` whenever `value` changes, which other keys may depend on, too."""
        name = f"{value.id} {key}"
        if name not in self._subscriptions:
            self._subscriptions[name] = value.on_change(partial(self._changed, key))

    def _watch(self, value: Value, key: str) -> bool:
        """Handle `key` whenever `value` changes; return whether the value was not watched before."""
        if value.id in self._subscriptions:
            return False
        self._subscriptions[value.id] = value.on_change(partial(self._changed, key))
        return True

    def _unwatch(self, value: Value) -> None:
        unsubscribe = self._subscriptions.pop(value.id, None)
        if unsubscribe is not None:
            unsubscribe()


def _step(name: str, request: LoadRequest) -> AbstractContextManager[tracing.Span]:
    """Return the span of a step of a load, in the trace of the call that made the request."""
    return tracing.step(name, request.traceparent, {"reside.load_request": request.id})


async def lead(alpha: Alpha) -> None:
    """Lead whenever no other Alpha leads, until cancelled. A term's writes are refused once its lease may be lost."""

    async def term(held: Held) -> None:
        alpha.lease = held
        with fenced_writes(held.check_lease):
            await Loop(alpha).run()

    await leadership(alpha).run(term)
