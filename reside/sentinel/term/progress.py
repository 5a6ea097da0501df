"""How far the operations of a term are, for the reports of their stacks.

Most operations end before anybody could read a report. Of one that lasts, the report says since when it runs and how
many of its objects have changed, which the watches see; it is renewed from time to time.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reside.model.reports import ApplyProgress
from reside.sentinel.objects.versions import live_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.cache import ObjectCache

PAUSE_S: Final = 2.0
"""Seconds until the progress of an operation is shown, and between two changes of it."""


@dataclass
class _Running:
    revision: str | None
    since: int
    objects: frozenset[str]
    changed: set[str] = field(default_factory=set)
    shown: ApplyProgress | None = None


class Progress:
    """The operations that run.

    Args:
        cache: the live objects.
        touch: called with the name of a stack whose progress has changed.
        pause: see `PAUSE_S`.
    """

    def __init__(self, cache: ObjectCache, touch: Callable[[str], None], pause: float = PAUSE_S) -> None:
        self._touch = touch
        self._pause = pause
        self._running: dict[str, _Running] = {}
        self._stacks: dict[str, str] = {}
        """Object → the stack whose operation changes it."""
        self._unlisten = cache.listen(self._object_changed)

    def close(self) -> None:
        """Unsubscribe."""
        self._unlisten()

    def runs(self, name: str) -> bool:
        """Return whether an operation on a stack runs."""
        return name in self._running

    def of(self, name: str) -> ApplyProgress | None:
        """Return the progress of the operation on a stack; None if none has lasted for long."""
        running = self._running.get(name)
        return None if running is None else running.shown

    @contextmanager
    def shown(self, name: str, revision: str | None, objects: Iterable[str]) -> Iterator[None]:
        """Show the progress of an operation while the block is open.

        Args:
            name: name of the stack.
            revision: the revision that is applied; None: the stack is removed.
            objects: `Kind/name` of the objects that the operation may change.
        """
        running = self._running[name] = _Running(revision, time.time_ns() // 1_000_000, frozenset(objects))
        self._stacks |= dict.fromkeys(running.objects, name)
        timer = asyncio.create_task(self._show(name, running), name=f"progress of {name}")
        try:
            yield
        finally:
            timer.cancel()
            del self._running[name]
            for key in running.objects:
                self._stacks.pop(key, None)
            if running.shown is not None:
                self._touch(name)

    async def _show(self, name: str, running: _Running) -> None:
        while True:
            await asyncio.sleep(self._pause)
            present = ApplyProgress(running.revision, running.since, len(running.changed), len(running.objects))
            if present != running.shown:
                running.shown = present
                self._touch(name)

    def _object_changed(self, key: str, before: K8sObject | None, live: K8sObject | None) -> None:
        name = self._stacks.get(key)
        if name is not None and live_version(before) != live_version(live):
            self._running[name].changed.add(key)
