"""What events say keeps objects from being current, by object. Plain state, no tasks.

An event counts until its object is deleted or Kubernetes deletes the event, which happens an hour after its last
occurrence. It is reported only while the object is in progress (`reside.model.object_state`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from reside.model.object_trouble import object_trouble
from reside.sentinel.objects.identity import metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reside.model.kinds import Kind
    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.watch import Cache

_MOST: Final = 1000
"""Number of objects of which the trouble is kept. Events of the whole namespace are watched."""


class _Trouble(NamedTuple):
    uid: str
    """Uid of the object."""
    event: str
    """Uid of the event."""
    text: str


class Troubles:
    """The troubles by `Kind/name`. Listeners are called with the key when the trouble of an object changes."""

    def __init__(self) -> None:
        self._troubles: dict[str, _Trouble] = {}
        self._listeners: list[Callable[[str], None]] = []

    def of(self, key: str, live: K8sObject) -> str | None:
        """Return what events say about a live object; None if they say nothing."""
        found = self._troubles.get(key)
        return found.text if found is not None and found.uid == str(metadata(live).get("uid")) else None

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` at every change; return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def load(self, kind: Kind, objects: Iterable[K8sObject]) -> None:
        """Replace all events."""
        self.replace(kind, objects)

    def replace(self, _kind: Kind, objects: Iterable[K8sObject]) -> None:
        """Replace all events."""
        before, self._troubles = self._troubles, {}
        for live in sorted(objects, key=lambda event: str(event.get("lastTimestamp"))):
            self._note(live)
        for key in before.keys() | self._troubles.keys():
            if before.get(key) != self._troubles.get(key):
                self._notify(key)

    def note(self, event: str, live: K8sObject) -> None:
        """Update from one event of the watch."""
        key = self._forget(live) if event == "DELETED" else self._note(live)
        if key is not None:
            self._notify(key)

    def _note(self, live: K8sObject) -> str | None:
        """Note an event; return the key of its object if that changes anything."""
        text, about = object_trouble(live), live.get("involvedObject") or {}
        if text is None:
            return None
        key = f"{about.get('kind')}/{about.get('name')}"
        trouble = _Trouble(str(about.get("uid")), str(metadata(live).get("uid")), text)
        before = self._troubles.pop(key, None)
        self._troubles[key] = trouble
        if len(self._troubles) > _MOST:
            del self._troubles[next(iter(self._troubles))]
        return key if before != trouble else None

    def _forget(self, live: K8sObject) -> str | None:
        """Forget an event; return the key of its object if that changes anything."""
        about = live.get("involvedObject") or {}
        key = f"{about.get('kind')}/{about.get('name')}"
        found = self._troubles.get(key)
        if found is None or found.event != str(metadata(live).get("uid")):
            return None
        del self._troubles[key]
        return key

    def _notify(self, key: str) -> None:
        for listener in list(self._listeners):
            listener(key)


class Both:
    """Passes events of a watch on to two caches.

    Args:
        first: the first one.
        second: the other one.
    """

    def __init__(self, first: Cache, second: Cache) -> None:
        self._caches = (first, second)

    async def load(self, kind: Kind, objects: Sequence[K8sObject]) -> None:
        """Replace all objects."""
        for cache in self._caches:
            await cache.load(kind, objects)

    def note(self, event: str, live: K8sObject) -> None:
        """Pass an event on."""
        for cache in self._caches:
            cache.note(event, live)
