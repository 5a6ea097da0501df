"""Which Jobs of the stacks have ended, so that they are not created again: noted at once, stored soon after."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reside.sentinel.objects.live import reported

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.authority import Authority
    from reside.sentinel.store.stacks import StackStore


class FinishedJobs:
    """The ends of Jobs.

    Args:
        store: the last validated stacks, which keep them.
        authority: what this process may currently do.
    """

    def __init__(self, store: StackStore, authority: Authority) -> None:
        self._store = store
        self._authority = authority
        self._unsaved: dict[str, K8sObject] = {}
        """Jobs whose end is noted and not stored, by `Kind/name`."""

    def is_unsaved(self, key: str) -> bool:
        """Return whether the end of a Job is noted and not stored."""
        return key in self._unsaved

    def note(self, stack: str, key: str, job: K8sObject) -> bool:
        """Note the end of a Job in memory, and return whether it is new; `save` stores it, outside the event loop."""
        if not self._authority.may_restore or self._is_noted(stack, key):
            return False
        if not self._authority.may_change:
            self._store.load_one(stack)  # the leader may have written it in the meantime
            if self._is_noted(stack, key):
                return False
        stored = self._store.stacks[stack]
        ended = self._unsaved[key] = reported(job)
        self._store.put(replace(stored, finished={**stored.finished, key: ended}))
        return True

    async def save(self, stack: str | None, key: str) -> None:
        """Store the end of a Job that was noted; forget it if no stack has the Job any more.

        Raises:
            NotReady: the volume can't be written. It is tried again; a restart before that loses it.
        """
        stored = self._store.stacks.get(stack) if stack is not None else None
        if stored is not None:
            await self._store.save_aside(replace(stored, finished={**stored.finished, key: self._unsaved[key]}))
        self._unsaved.pop(key, None)

    def _is_noted(self, stack: str, key: str) -> bool:
        """Return whether the end of a Job is stored, or its stack no longer exists."""
        stored = self._store.stacks.get(stack)
        return stored is None or key in stored.finished
