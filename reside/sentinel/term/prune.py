"""Deletes what carries our label and stands in no stack; in careful mode nothing.

Invariant: an object is unknown only if every declared stack was read and neither declares nor holds it. What another
object controls is that one's business.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from reside.common.backoff import Retries
from reside.model.stacks import object_key
from reside.sentinel.backoff import CONNECT_BACKOFF
from reside.sentinel.errors import ClusterRefused, ClusterUnavailable
from reside.sentinel.objects.identity import is_going, is_owned

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reside.model.stacks import K8sObject
    from reside.sentinel.queue import LaneQueue
    from reside.sentinel.term.applier import Applier
    from reside.sentinel.term.context import Desk
    from reside.sentinel.term.reporter import Reporter

_log = structlog.get_logger(__name__)

_LAST: Final = ("ServiceAccount", "Role", "RoleBinding")
"""Deleted after the rest: a process that is being removed may still use them."""


def unknown(live: Mapping[str, K8sObject], known: Collection[str]) -> list[str]:
    """Keys of the live objects to delete, in the order of their deletion."""
    found = [key for key, seen in live.items() if key not in known and not is_owned(seen) and not is_going(seen)]
    return sorted(found, key=lambda key: (key.startswith(_LAST), key))


class Pruner:
    """Deletes unknown objects of one term.

    Args:
        desk: the term's parts.
        stacks: the queue of stacks; nothing is deleted while one of them is being worked on.
        applier: knows which stacks could not be read.
        reporter: knows what is declared.
    """

    def __init__(self, desk: Desk, stacks: LaneQueue, applier: Applier, reporter: Reporter) -> None:
        self._desk = desk
        self._stacks = stacks
        self._applier = applier
        self._reporter = reporter
        self._woken = asyncio.Event()
        self._woken.set()
        self._unlisten = (
            desk.guardian.mirror.listen(lambda _key, _before, _live: self.wake()),
            desk.data.root.on_change(lambda _: self.wake()),
        )

    def wake(self) -> None:
        """Something changed: look again."""
        self._woken.set()

    def close(self) -> None:
        """Hear of no further change."""
        for unlisten in self._unlisten:
            unlisten()

    async def run(self) -> None:
        """Delete what is unknown until cancelled."""
        retries = Retries(CONNECT_BACKOFF)
        while True:
            await self._woken.wait()
            self._woken.clear()
            await self._desk.guardian.mirror.ready.wait()
            await self._stacks.wait_idle()
            try:
                await self._pass()
                retries.succeeded()
            except (ClusterUnavailable, ClusterRefused) as error:
                pause = retries.failed()
                _log.warning("unknown objects can't be deleted", seconds=pause, error=str(error))
                await asyncio.sleep(pause)
                self._woken.set()

    async def _pass(self) -> None:
        careful = self._desk.data.careful or getattr(self._desk.context.settings, "careful", None) is True
        if careful or self._applier.unread or self._desk.guardian.mirror.is_teardown:
            return
        for key in unknown(self._desk.guardian.mirror.objects, self._known()):
            if not self._stacks.idle:
                self._woken.set()
                return
            await self._desk.lease.check()
            _log.info("deleting, since no stack knows it", object=key)
            await self._desk.guardian.cluster.delete(key)

    def _known(self) -> set[str]:
        stored = self._desk.guardian.snapshot.stacks.values()
        known = {key for stack in stored for key in stack.keys() | stack.pending | stack.leaving}
        return known | {key for stack in self._reporter.declared.values() for key in map(object_key, stack.objects)}
