"""Cache of the live objects of our namespace that carry our label, filled by the watches. Plain state, no tasks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from reside.common.turns import Turns
from reside.model.constants import TEARDOWN_MARKER
from reside.model.kinds import KINDS, Kind
from reside.sentinel.objects import managed_fields
from reside.sentinel.objects.identity import live_key, metadata, split_key, stack_of
from reside.sentinel.objects.index import KeyIndex
from reside.sentinel.objects.live import kept
from reside.sentinel.objects.packed import PackedObjects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from reside.model.stacks import K8sObject

_Version = tuple[str | None, str | None]
"""Unique id and resource version of a live object."""
_AT_ONCE: Final = 32
"""Objects of lists that are noted in one round of the event loop."""


class ObjectCache:
    """Live objects by `Kind/name`, as `reside.sentinel.objects.live.kept` reduces them.

    Listeners are called with the key, the object before and the object now (None: it does not exist), once for each
    change: an object that is shown again in the same version is no change. They must not raise.
    """

    def __init__(self, kinds: Iterable[Kind] = KINDS) -> None:
        self._objects = PackedObjects()
        self._versions: dict[str, _Version] = {}
        self._by_kind = KeyIndex()
        self._by_stack = KeyIndex()
        self._shared: set[str] = set()
        self._missing = {kind.kind for kind in kinds}
        self._turns = Turns()
        self._listeners: list[Callable[[str, K8sObject | None, K8sObject | None], None]] = []
        self._listed: list[Callable[[Kind], None]] = []
        self.ready = asyncio.Event()
        """Set as soon as every kind has been listed."""

    @property
    def objects(self) -> Mapping[str, K8sObject]:
        """All live objects; read-only. A look-up unpacks the object."""
        return self._objects

    @property
    def is_teardown(self) -> bool:
        """Whether the cluster is being destroyed: then nothing is repaired, applied or pruned."""
        return TEARDOWN_MARKER in self._objects

    def get(self, key: str) -> K8sObject | None:
        """Return the live object; None if there is none with our label."""
        return self._objects.get(key)

    def is_shared(self, key: str) -> bool:
        """Return whether other managers own fields of a live object. It costs less than to look it up."""
        return key in self._shared

    def of_stack(self, stack: str) -> frozenset[str]:
        """Return the keys of the live objects whose label names a stack."""
        return self._by_stack.keys(stack)

    def is_listed(self, key: str) -> bool:
        """Return whether the key's kind has been listed, so that an object absent from the cache does not exist."""
        return split_key(key)[0] not in self._missing

    def listen(self, listener: Callable[[str, K8sObject | None, K8sObject | None], None]) -> Callable[[], None]:
        """Call `listener` at every change; return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def listen_lists(self, listener: Callable[[Kind], None]) -> None:
        """Call `listener` after each list of a kind, when objects absent from the cache do not exist."""
        self._listed.append(listener)

    def replace(self, kind: Kind, objects: Iterable[K8sObject]) -> None:
        """Replace all objects of a kind; notify listeners of those that have changed or no longer exist."""
        found = {live_key(live): live for live in objects}
        removed = self._by_kind.keys(kind.kind) - found.keys()
        self._missing.discard(kind.kind)
        for key in sorted(removed):
            self._put(key, None)
        for key, live in found.items():
            if not self._is_same(key, live):
                self._put(key, live)
        if not self._missing:
            self.ready.set()
        for listener in self._listed:
            listener(kind)

    async def load(self, kind: Kind, objects: Sequence[K8sObject]) -> None:
        """Replace all objects of a kind, in several rounds of the event loop: a thousand take a quarter of a second.

        Lists of several kinds take turns. Until the last turn, the kind counts as listed only if it was before.
        """
        for start in range(0, len(objects), _AT_ONCE):
            await self._turns.take()
            for live in objects[start : start + _AT_ONCE]:
                self.note("ADDED", live)
        removed = sorted(self._by_kind.keys(kind.kind) - {live_key(live) for live in objects})
        for start in range(0, len(removed), _AT_ONCE):
            await self._turns.take()
            for key in removed[start : start + _AT_ONCE]:
                self._put(key, None)
        await self._turns.take()
        self.replace(kind, objects)

    def note(self, event: str, live: K8sObject) -> None:
        """Update the cache from one event of a watch."""
        key = live_key(live)
        if event == "DELETED" or not self._is_same(key, live):
            self._put(key, None if event == "DELETED" else live, last=live)

    def _put(self, key: str, live: K8sObject | None, last: K8sObject | None = None) -> None:
        before = self._objects.get(key)
        self._index(key, before, live)
        if live is None:
            self._objects.remove(key)
            self._versions.pop(key, None)
            self._shared.discard(key)
            before = last or before  # the event carries the last state, which may be newer than ours
        else:
            live = kept(live)
            self._objects.put(key, live)
            self._versions[key] = _version(live)
            if managed_fields.entries(live):
                self._shared.add(key)
            else:
                self._shared.discard(key)
        for listener in list(self._listeners):
            listener(key, before, live)

    def _is_same(self, key: str, live: K8sObject) -> bool:
        """Return whether a live object is shown again in the same version."""
        version = _version(live)
        return version[1] is not None and self._versions.get(key) == version

    def _index(self, key: str, before: K8sObject | None, live: K8sObject | None) -> None:
        if live is None:
            self._by_kind.discard(split_key(key)[0], key)
        else:
            self._by_kind.add(split_key(key)[0], key)
        old, new = (None if seen is None else stack_of(seen) for seen in (before, live))
        if old != new and old is not None:
            self._by_stack.discard(old, key)
        if old != new and new is not None:
            self._by_stack.add(new, key)


def _version(live: K8sObject) -> _Version:
    found = metadata(live)
    return found.get("uid"), found.get("resourceVersion")
