"""Repair drift: within milliseconds, make live objects equal to those of the last validated stacks.

Neither the engine nor Jazz nor etcd is needed.

Level-triggered: every change in the cache queues the object's key. The handler reads the current state of store, cache
and authority, and `reside.sentinel.guard.drift` decides. Objects of a stack on which the engine works are not repaired.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from reside.common.turns import in_rounds
from reside.common.workqueue import WorkQueue
from reside.model.constants import FIELD_MANAGER, PLATFORM_STACK, TEARDOWN_MARKER
from reside.model.errors import NotReady
from reside.model.stacks import object_key
from reside.sentinel.backoff import ATTEMPTS, REPAIR_BACKOFF, RepairLimiter
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable, ForeignObjects, fault_text, judge
from reside.sentinel.guard.availability import Availability
from reside.sentinel.guard.desired import DesiredObjects
from reside.sentinel.guard.drift import ObjectState, decide, fingerprint, managers, taken_over, to_take_over
from reside.sentinel.guard.findings import Findings
from reside.sentinel.guard.finished_jobs import FinishedJobs
from reside.sentinel.guard.own_writes import OwnWrites
from reside.sentinel.guard.verifications import Verifications
from reside.sentinel.objects.identity import is_finished_job, is_ours, metadata, split_key
from reside.sentinel.objects.yields import left_to_others, unless_changed
from reside.sentinel.store.stacks import FILES_AT_ONCE
from reside.sentinel.store.verified import VerifiedStates

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from reside.model.kinds import Kind
    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.api import KubernetesApi
    from reside.sentinel.guard.authority import Authority
    from reside.sentinel.guard.cache import ObjectCache
    from reside.sentinel.guard.desired import Desired
    from reside.sentinel.guard.drift import Action
    from reside.sentinel.store.stacks import StackStore
    from reside.sentinel.store.vault import Vault

_CHANGED: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})
"""Answers of the API server if a precondition of a patch does not hold."""
_WORKERS = 4
_RESET_AFTER_S = 120.0
_ATTEMPTS_BEFORE_REPORT = 3


class DriftRepairer:
    """Restores deleted objects and reverts changes of others.

    Args:
        api: the Kubernetes API.
        cache: the live objects.
        store: the last validated stacks.
        vault: secret values.
        authority: what this process may currently do.
    """

    def __init__(
        self,
        api: KubernetesApi,
        cache: ObjectCache,
        store: StackStore,
        vault: Vault,
        authority: Authority,
    ) -> None:
        self._api = api
        self._cache = cache
        self._store = store
        self._authority = authority
        self._desired = DesiredObjects(api.namespace, store, vault, cache)
        files = VerifiedStates(store.verified, vault)
        files.keep_only(store.stacks)
        self.verified = Verifications(files)
        self._finished = FinishedJobs(store, authority)
        self._suspended: set[str] = set()
        self._listed: set[str] = set()
        """Kinds of which a list was seen."""
        self._own = OwnWrites()
        self._attempts: dict[str, int] = {}
        self._limiter = RepairLimiter(REPAIR_BACKOFF, _RESET_AFTER_S)
        self._queue = WorkQueue(
            "repair",
            self._handle,
            workers=_WORKERS,
            backoff=REPAIR_BACKOFF,
            judge=judge,
            urgent=self._is_urgent,
            attempts=ATTEMPTS,
        )
        self._listeners: list[Callable[[str], None]] = []
        self.findings = Findings(api, self._notify)
        self.availability = Availability(api)
        self.availability.listen(self._queue.resume)
        self.problems: dict[str, str] = {}
        """Why an object can't be repaired, by `Kind/name`."""
        cache.listen(self._object_changed)
        cache.listen_lists(self._examine_kind)
        authority.listen(self.examine_all)
        for name in self._desired.stacks():
            self._load(name)

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with a key when its problem or fights change or its Job ends; return what unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def reload(self) -> None:
        """Read the stacks that have changed from the store again, and examine the objects of all."""
        async for name in in_rounds(self._desired.stacks(), FILES_AT_ONCE):
            self._load(name)
        self.examine_all()

    def update(self, name: str) -> None:
        """Read one stack from the store again, and examine its objects."""
        self._replaced(name, self._desired.replace(name))
        self.examine(name)

    def examine(self, name: str) -> None:
        """Queue all objects of a stack."""
        for key in self._desired.keys_of(name):
            self._queue.add(key)

    def examine_all(self) -> None:
        """Queue all objects of all stacks."""
        for key in self._desired:
            self._queue.add(key)

    def _examine_kind(self, kind: Kind) -> None:
        """Queue the objects that a list has not shown; the others were queued if they have changed.

        After the first list of a kind, all are queued: before its end, nothing is repaired.
        """
        is_first = kind.kind not in self._listed
        self._listed.add(kind.kind)
        for key in self._desired:
            if split_key(key)[0] == kind.kind and (is_first or key not in self._cache.objects):
                self._queue.add(key)

    def _is_urgent(self, key: str) -> bool:
        """Return whether an object belongs to what all others need: Jazz and etcd."""
        desired = self._desired.get(key)
        return desired is not None and desired.stack == PLATFORM_STACK

    @contextmanager
    def suspended(self, name: str, objects: Collection[str] = ()) -> Iterator[dict[str, str]]:
        """Suspend repairs of a stack's objects while the block is open; then examine them.

        Args:
            name: name of the stack.
            objects: `Kind/name` of the objects that the engine may write in the block.

        Yields:
            the resource versions of these objects, which the block fills in. They are not verified again.
        """
        written: dict[str, str] = {}
        self._suspended.add(name)
        self._own.begin(objects)
        try:
            yield written
        finally:
            self._suspended.discard(name)
            self._replaced(name, self._desired.replace(name))
            for key, live in self._own.end(objects, written, self._cache.objects).items():
                self._verify(key, live)
            self.examine(name)

    async def run(self) -> None:
        """Repair until cancelled. The first list of each kind queues its objects."""
        await self._queue.run()

    async def settled(self) -> None:
        """Wait until every queued object was examined."""
        await self._cache.ready.wait()
        await self._queue.wait_idle()

    def _load(self, name: str) -> None:
        """Read a stack from the store again if it has changed, and what another process has verified of it."""
        if self._desired.is_outdated(name):
            self._replaced(name, self._desired.replace(name))
        self.verified.load(name, self._desired.keys_of(name))

    def _replaced(self, name: str, gone: Iterable[str]) -> None:
        """Forget what is known about the objects that a stack no longer has, after it was read again."""
        for key in gone:
            self.findings.forget(key)
        self.verified.keep_only(name, self._desired.keys_of(name))

    def _object_changed(self, key: str, before: K8sObject | None, live: K8sObject | None) -> None:
        """Handle a change of a live object."""
        if self._own.note(key, live) and live is not None:
            self._verify(key, live)
        desired = self._desired.get(key)
        if desired is None:
            return
        ended = live or before
        if ended is not None and is_finished_job(ended) and self._finished.note(desired.stack, key, ended):
            self._notify(key)
        if desired.packed is None and live is not None:
            self._desired.fill(desired.stack)
        self._queue.add(key)

    async def _handle(self, key: str) -> None:
        if self._finished.is_unsaved(key):
            desired = self._desired.get(key)
            await self._finished.save(desired.stack if desired else None, key)
        action = self._action(key)
        desired = self._desired.get(key)
        if action == "leave" or desired is None:
            self._succeeded(key)
            return
        now = asyncio.get_running_loop().time()
        if (pause := self._limiter.wait(key, now)) > 0:
            self._queue.add(key, after=pause)
            return
        if not self._authority.may_change:
            self._replaced(desired.stack, self._desired.reload(desired.stack))  # the leader may have written it
            desired = self._desired.get(key)
            if desired is None or self._action(key) != action:
                return
        try:
            await self._repair(key, desired, action)
        except Exception as error:
            self._failed(key, error)
            raise
        self._succeeded(key)

    def _action(self, key: str) -> Action:
        """Return the repair of an object that our authority permits."""
        desired = self._desired.get(key)
        stored = self._store.stacks.get(desired.stack) if desired else None
        if desired is None or stored is None or desired.stack in self._suspended or not self._cache.is_listed(key):
            return "leave"
        if self._own.awaits(key):
            return "leave"  # the watch is about to show what the engine wrote
        if key in stored.leaving or key == TEARDOWN_MARKER or self._cache.is_teardown:
            return "leave"
        live = self._cache.get(key)
        verified = self.verified.get(desired.stack, key)
        action = decide(ObjectState(desired.object or {}, live, verified, key in stored.finished))
        if action == "create":
            return action if self._authority.may_restore else "leave"
        if action == "apply" and (not self._authority.may_change or key in stored.pending or desired.packed is None):
            return "leave"
        return action

    async def _repair(self, key: str, desired: Desired, action: Action) -> None:
        if desired.object is None:
            raise NotReady(desired.fault or f"{key}: no desired object")
        before = self._cache.get(key) if action == "apply" else await self._unlabelled(key)
        now = before
        if before is not None and to_take_over(desired.object, before):
            now = await self._take_over(key, desired.object, before)
        live = await self._api.apply(unless_changed(left_to_others(desired.object, now), now))
        verified = fingerprint(desired.object, live)
        self.verified.note(desired.stack, key, verified)
        if before is None or verified != fingerprint(desired.object, before):
            self._limiter.note(key, asyncio.get_running_loop().time())
            self.findings.repaired(desired.object, desired.stack, action, before, live)

    async def _take_over(self, key: str, desired: K8sObject, seen: K8sObject) -> K8sObject:
        """Change the managers of fields of an object (`taken_over`), and return the live object.

        The cache does not know which fields we own.
        """
        live = await self._api.get(key)
        if live is None or metadata(live).get("uid") != metadata(seen).get("uid"):
            return seen  # the watch is about to show that
        entries = taken_over(desired, live)
        return live if entries is None else await self._api.set_managers(live, entries)

    async def take_over(self, objects: Iterable[K8sObject]) -> None:
        """Change the managers of fields of these desired objects, before the engine applies them.

        Raises:
            NotReady: others have changed an object at the same moment, or the API server is unavailable.
            ClusterRefused: a request was refused.
        """
        for obj in objects:
            key = object_key(obj)
            live = self._cache.get(key) if self._cache.is_shared(key) else None
            if live is None or not to_take_over(obj, live):
                continue
            try:
                await self._take_over(key, obj, live)
            except ClusterRefused as error:
                if error.status not in _CHANGED:
                    raise
                raise NotReady(f"{key} was changed at the same moment; this is tried again") from error

    def findings_of(self, key: str) -> tuple[str, ...]:
        """Return what is to be reported about drift of an object: fights, and fields that other programs added."""
        desired = self._desired.get(key)
        if desired is None or desired.packed is None:
            return ()
        live = self._cache.get(key) if self._cache.is_shared(key) else None
        if live is None:
            return self.findings.fights(key)
        return self.findings.texts(key, desired.object or {}, live)

    def reverted_of(self, key: str) -> tuple[str, ...]:
        """Return what others have changed in an object lately, and what was changed back."""
        return self.findings.reverted(key)

    def _verify(self, key: str, live: K8sObject) -> None:
        """Note that a live state agrees with the desired object; not if others manage what they should not."""
        desired = self._desired.get(key)
        if desired is not None and desired.object is not None and not to_take_over(desired.object, live):
            self.verified.note(desired.stack, key, fingerprint(desired.object, live))

    async def _unlabelled(self, key: str) -> K8sObject | None:
        """Return the object of this name that lost our label; None if no object has the name.

        Raises:
            ForeignObjects: the object was never ours.
        """
        live = await self._api.get(key)
        if live is None or is_ours(live):
            return live
        names = managers(live)
        if FIELD_MANAGER not in names:
            raise ForeignObjects(
                f"{key} was replaced by an object of {', '.join(names) or 'an unknown manager'}: delete that object"
            )
        return live

    def _failed(self, key: str, error: Exception) -> None:
        """Note a problem: immediately if an operator must act, otherwise after several attempts."""
        if isinstance(error, ClusterUnavailable):
            self.availability.doubt()
        attempts = self._attempts[key] = self._attempts.get(key, 0) + 1
        is_early = attempts < _ATTEMPTS_BEFORE_REPORT and not isinstance(error, ForeignObjects)
        if isinstance(error, ClusterUnavailable) or is_early:
            return
        self.problems[key] = fault_text(error)
        self._notify(key)

    def _succeeded(self, key: str) -> None:
        self._attempts.pop(key, None)
        if self.problems.pop(key, None) is not None:
            self._notify(key)

    def _notify(self, key: str) -> None:
        for listener in list(self._listeners):
            listener(key)
