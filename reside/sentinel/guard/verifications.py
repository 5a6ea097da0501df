"""Which live state of each object agreed with the desired one last: in memory, and stored soon after each change.

The files save requests only, so what is lost costs one request for each object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.common.workqueue import WorkQueue
from reside.sentinel.backoff import REPAIR_BACKOFF

if TYPE_CHECKING:
    from collections.abc import Collection

    from reside.sentinel.store.verified import VerifiedStates

_SAVE_AFTER_S = 2.0
"""Seconds after which a change is stored: an apply verifies several objects of a stack."""


class Verifications:
    """The fingerprints of verified states (`reside.sentinel.guard.drift`), by stack and `Kind/name`.

    Args:
        files: where they are stored.
    """

    def __init__(self, files: VerifiedStates) -> None:
        self._files = files
        self._of: dict[str, dict[str, str]] = {}
        self.queue = WorkQueue("verified", self._save, workers=1, backoff=REPAIR_BACKOFF)

    def get(self, stack: str, key: str) -> str | None:
        """Return the fingerprint of the state of an object that was verified last; None if none was."""
        return self._of.get(stack, {}).get(key)

    def note(self, stack: str, key: str, fingerprint: str) -> None:
        """Note that a state was verified."""
        if self.get(stack, key) != fingerprint:
            self._of.setdefault(stack, {})[key] = fingerprint
            self.queue.add(stack, after=_SAVE_AFTER_S)

    def load(self, stack: str, keys: Collection[str]) -> None:
        """Read what another process has stored about these objects of a stack."""
        found = {key: value for key, value in self._files.load(stack).items() if key in keys}
        if found:
            self._of[stack] = self._of.get(stack, {}) | found

    def keep_only(self, stack: str, keys: Collection[str]) -> None:
        """Forget all other objects of a stack."""
        before = self._of.get(stack, {})
        if not before.keys() <= set(keys):
            self._of[stack] = {key: value for key, value in before.items() if key in keys}
            self.queue.add(stack, after=_SAVE_AFTER_S)

    async def run(self) -> None:
        """Store changes until cancelled."""
        await self.queue.run()

    async def _save(self, stack: str) -> None:
        if not self._of.get(stack):
            self._of.pop(stack, None)
        await self._files.save(stack, self._of.get(stack, {}))
