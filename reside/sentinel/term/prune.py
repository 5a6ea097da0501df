"""Delete live objects that carry our label and are in no stack. Careful mode turns this off.

Invariant: an object is deleted only if every desired stack was read, and neither a desired nor a stored stack contains
it. Objects that another object controls are left to Kubernetes' garbage collection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from reside.common.workqueue import WorkQueue
from reside.model.stacks import object_key
from reside.sentinel.backoff import CONNECT_BACKOFF
from reside.sentinel.objects.identity import is_being_deleted, is_owned

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reside.model.stacks import K8sObject
    from reside.sentinel.term.applier import Applier
    from reside.sentinel.term.context import TermContext
    from reside.sentinel.term.reporter import Reporter

_log = structlog.get_logger(__name__)

_LAST: Final = ("ServiceAccount", "Role", "RoleBinding")
"""Kinds that are deleted last, because a pod that is being deleted may still use them."""
_ALL: Final = "unknown objects"
"""The queue's only key: each pass examines all objects."""


def unknown(live: Mapping[str, K8sObject], known: Collection[str]) -> list[str]:
    """Return the keys of the live objects to delete, in the order of their deletion."""
    found = [
        key for key, seen in live.items() if key not in known and not is_owned(seen) and not is_being_deleted(seen)
    ]
    return sorted(found, key=lambda key: (key.startswith(_LAST), key))


class Pruner:
    """Deletes unknown objects during one term.

    Args:
        context: the parts of the term.
        stacks: the queue of stacks; nothing is deleted while it is busy.
        applier: knows which stacks could not be read.
        reporter: knows the desired stacks.
    """

    def __init__(self, context: TermContext, stacks: WorkQueue, applier: Applier, reporter: Reporter) -> None:
        self._context = context
        self._stacks = stacks
        self._applier = applier
        self._reporter = reporter
        self._queue = WorkQueue("prune", self._prune, workers=1, backoff=CONNECT_BACKOFF)
        self.wake()
        self._unlisten = (
            context.guard.cache.listen(lambda _key, _before, _live: self.wake()),
            context.data.root.on_change(lambda _: self.wake()),
        )

    def wake(self) -> None:
        """Queue a search for unknown objects."""
        self._queue.add(_ALL)

    def close(self) -> None:
        """Unsubscribe."""
        for unlisten in self._unlisten:
            unlisten()

    async def run(self) -> None:
        """Delete unknown objects until cancelled."""
        await self._queue.run()

    async def _prune(self, _: str) -> None:
        await self._context.guard.cache.ready.wait()
        await self._stacks.wait_idle()
        careful = self._context.data.careful or getattr(self._context.replica.settings, "careful", None) is True
        if careful or self._applier.unread or self._context.guard.cache.is_teardown:
            return
        for key in unknown(self._context.guard.cache.objects, self._known()):
            if not self._stacks.idle:
                self.wake()
                return
            await self._context.lease.check()
            _log.info("deleting object that is in no stack", object=key)
            await self._context.guard.api.delete(key)

    def _known(self) -> set[str]:
        stored = self._context.guard.store.stacks.values()
        known = {key for stack in stored for key in stack.keys() | stack.pending | stack.leaving}
        return known | {key for stack in self._reporter.desired.values() for key in map(object_key, stack.objects)}
