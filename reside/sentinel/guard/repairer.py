"""The fast path: keeps live objects as the last validated stacks say, in milliseconds, without engine, Jazz or etcd.

Level-triggered: every change in the cache adds the object's key; whoever handles it reads what stands in the store,
the cache and the authority at that moment, and ``drift`` decides. While the engine works on a stack its keys wait.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog
from prometheus_client import Counter

from reside.common.workqueue import WorkQueue
from reside.model.applied import as_applied
from reside.model.constants import FIELD_MANAGER
from reside.model.errors import NotReady
from reside.model.stacks import object_key
from reside.sentinel.backoff import REPAIR_BACKOFF, RepairLimiter
from reside.sentinel.errors import ClusterUnavailable, ForeignObjects, judge
from reside.sentinel.guard.drift import Standing, decide, fingerprint, managers, taken_over
from reside.sentinel.objects.identity import is_finished_job, is_ours, split_key
from reside.sentinel.objects.live import reported
from reside.sentinel.objects.secrets import filled, live_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reside.model.kinds import Kind
    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.api import KubernetesApi
    from reside.sentinel.guard.authority import Authority
    from reside.sentinel.guard.cache import ObjectCache
    from reside.sentinel.guard.drift import Action
    from reside.sentinel.objects.secrets import Reference
    from reside.sentinel.store.stacks import StackStore, StoredStack
    from reside.sentinel.store.vault import Vault

_log = structlog.get_logger(__name__)

REPAIRS = Counter("reside_sentinel_repairs_total", "Objects put back.", ["kind", "action"])
_AT_ONCE = 4
_CALM_S = 120.0
_PASSING_TRIES = 3


@dataclass(frozen=True)
class _Desired:
    """An object as a stored stack wants it; without a manifest, why there is none."""

    stack: str
    manifest: K8sObject | None
    fault: str | None = None


class DriftRepairer:
    """Puts back what was changed or deleted.

    Args:
        api: the Kubernetes API.
        cache: the live objects.
        store: the last validated stacks.
        vault: values of secrets.
        authority: what we may do at present.
    """

    def __init__(
        self, api: KubernetesApi, cache: ObjectCache, store: StackStore, vault: Vault, authority: Authority
    ) -> None:
        self._api = api
        self._cache = cache
        self._store = store
        self._vault = vault
        self._authority = authority
        self._desired: dict[str, _Desired] = {}
        self._verified: dict[str, str] = {}
        self._held: set[str] = set()
        self._tries: dict[str, int] = {}
        self._limiter = RepairLimiter(REPAIR_BACKOFF, _CALM_S)
        self._queue = WorkQueue("repair", self._handle, workers=_AT_ONCE, backoff=REPAIR_BACKOFF, judge=judge)
        self._listeners: list[Callable[[str], None]] = []
        self.problems: dict[str, str] = {}
        """Why an object can't be put back, by ``Kind/name``."""
        cache.listen(self._seen)
        cache.listen_lists(self._examine_kind)
        authority.listen(self.examine_all)
        self.reload()

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call ``listener`` with each key whose problem, or end as a Job, is news; returns how to stop that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def reload(self) -> None:
        """Take all stacks as they stand in the store now."""
        desired: dict[str, _Desired] = {}
        for stored in self._store.stacks.values():
            desired |= self._stack(stored)
        self._desired = desired
        self.examine_all()

    def take(self, name: str) -> None:
        """Take one stack as it stands in the store now."""
        self._replace(name)
        self.examine(name)

    def examine(self, name: str) -> None:
        """Look at all objects of a stack."""
        for key, desired in self._desired.items():
            if desired.stack == name:
                self._queue.add(key)

    def examine_all(self) -> None:
        """Look at all objects of all stacks."""
        for key in self._desired:
            self._queue.add(key)

    def _examine_kind(self, kind: Kind) -> None:
        for key in self._desired:
            if split_key(key)[0] == kind.kind:
                self._queue.add(key)

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        """Leave a stack's objects alone inside of the block, and look at them after it."""
        self._held.add(name)
        try:
            yield
        finally:
            self._held.discard(name)
            self.take(name)

    async def run(self) -> None:
        """Repair until cancelled."""
        await self._queue.run()

    async def settled(self) -> None:
        """Wait until every object was looked at."""
        await self._cache.ready.wait()
        await self._queue.wait_idle()

    def _replace(self, name: str) -> None:
        stored = self._store.stacks.get(name)
        rest = {key: desired for key, desired in self._desired.items() if desired.stack != name}
        self._desired = rest | (self._stack(stored) if stored else {})

    def _stack(self, stored: StoredStack) -> dict[str, _Desired]:
        return {object_key(manifest): self._resolved(stored, manifest) for manifest in stored.objects}

    def _resolved(self, stored: StoredStack, manifest: K8sObject) -> _Desired:
        def value_of(reference: Reference) -> str | None:
            kept = self._vault.get(stored.owner, reference.target)
            return kept if kept is not None else live_value(self._cache.get(reference.object), reference.key)

        try:
            return _Desired(stored.name, as_applied(filled(manifest, value_of), self._api.namespace))
        except NotReady as error:
            return _Desired(stored.name, None, str(error))

    def _seen(self, key: str, before: K8sObject | None, live: K8sObject | None) -> None:
        """Take a change of a live object."""
        desired = self._desired.get(key)
        if desired is None:
            return
        ended = live or before
        if ended is not None and is_finished_job(ended):
            self._note_finished(desired.stack, key, ended)
        if desired.manifest is None and live is not None and (stored := self._store.stacks.get(desired.stack)):
            self._desired |= self._stack(stored)  # a live Secret may hold what was missing
        self._queue.add(key)

    def _note_finished(self, stack: str, key: str, job: K8sObject) -> None:
        if not self._authority.may_restore or self._is_noted(stack, key):
            return
        if not self._authority.may_change:
            self._store.load()  # one that leads may have written it since we read it
            if self._is_noted(stack, key):
                return
        stored = self._store.stacks[stack]
        try:
            self._store.save(replace(stored, finished={**stored.finished, key: reported(job)}))
        except NotReady as error:
            _log.error("the end of a job is not kept over a restart", object=key, error=str(error))
        self._tell(key)

    def _is_noted(self, stack: str, key: str) -> bool:
        """Whether the end of a Job is known of a stack, or the stack is gone."""
        stored = self._store.stacks.get(stack)
        return stored is None or key in stored.finished

    async def _handle(self, key: str) -> None:
        action = self._action(key)
        desired = self._desired.get(key)
        if action == "leave" or desired is None:
            self._solved(key)
            return
        now = asyncio.get_running_loop().time()
        if (pause := self._limiter.wait(key, now)) > 0:
            self._queue.add(key, after=pause)
            return
        if not self._authority.may_change:
            self._read_again(desired.stack)
            if self._action(key) != action:
                return
        try:
            await self._put_back(key, self._desired[key], action)
        except Exception as error:
            self._failed(key, error)
            raise
        self._solved(key)

    def _read_again(self, name: str) -> None:
        """Take a stack as it stands on the volume: one that leads may have written it since we read it."""
        self._store.load()
        self._vault.load()
        self._replace(name)

    def _action(self, key: str) -> Action:
        """What to do about an object, with what we may do taken into account."""
        desired = self._desired.get(key)
        stored = self._store.stacks.get(desired.stack) if desired else None
        if desired is None or stored is None or desired.stack in self._held or not self._cache.knows(key):
            return "leave"
        if key in stored.leaving or self._cache.is_teardown:
            return "leave"
        live = self._cache.get(key)
        verified = self._verified.get(key)
        action = decide(Standing(desired.manifest or {}, live, verified, key in stored.finished))
        if action == "create":
            return action if self._authority.may_restore else "leave"
        if action == "apply" and (not self._authority.may_change or key in stored.pending or desired.manifest is None):
            return "leave"
        return action

    async def _put_back(self, key: str, desired: _Desired, action: Action) -> None:
        if desired.manifest is None:
            raise NotReady(desired.fault or f"{key} has no manifest")
        before = self._cache.get(key) if action == "apply" else await self._unlabelled(key)
        if before is not None and (entries := taken_over(before)) is not None:
            await self._api.set_managers(before, entries)
        live = await self._api.apply(desired.manifest)
        self._verified[key] = fingerprint(desired.manifest, live)
        if before is None or self._verified[key] != fingerprint(desired.manifest, before):
            self._limiter.note(key, asyncio.get_running_loop().time())
            REPAIRS.labels(desired.manifest["kind"], action).inc()
            _log.info("put back", object=key, of=desired.stack, action=action)

    async def _unlabelled(self, key: str) -> K8sObject | None:
        """The object behind a name that shows no object of ours: None, or one that lost our label.

        Raises:
            ForeignObjects: it never was ours.
        """
        live = await self._api.get(key)
        if live is None or is_ours(live):
            return live
        names = managers(live)
        if FIELD_MANAGER not in names:
            raise ForeignObjects(
                f"{key} was replaced by an object of {', '.join(names) or 'an unknown manager'}: delete that one"
            )
        return live

    def _failed(self, key: str, error: Exception) -> None:
        """Note a problem: at once where somebody must act, else only when it does not pass by itself."""
        tries = self._tries[key] = self._tries.get(key, 0) + 1
        if isinstance(error, ClusterUnavailable) or (tries < _PASSING_TRIES and not isinstance(error, ForeignObjects)):
            return
        self.problems[key] = str(error)
        self._tell(key)

    def _solved(self, key: str) -> None:
        self._tries.pop(key, None)
        if self.problems.pop(key, None) is not None:
            self._tell(key)

    def _tell(self, key: str) -> None:
        for listener in list(self._listeners):
            listener(key)
