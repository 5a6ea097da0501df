"""What one waiter for a lock has seen of its holder."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from reside.common.backoff import Backoff, Retries

if TYPE_CHECKING:
    from reside.locks.errors import EtcdUnavailable
    from reside.locks.etcd import Entry

_RECHECK_S = 10.0
_MARGIN_S = 0.1
_ACQUIRE = Backoff(first=0.05, longest=2.0, jitter=0.2)
"""Pauses between attempts to take a lock while etcd is unavailable. Jitter spreads the attempts of many clients."""


class Attempts:
    """The results of the attempts to take a lock.

    Attributes:
        holder: name of the last holder; empty if it is unknown.
        unavailable: why the last attempt could not ask etcd; None: it could.
        retries: the pauses between attempts that could not.
    """

    def __init__(self) -> None:
        self.holder = ""
        self.unavailable: EtcdUnavailable | None = None
        self.retries = Retries(_ACQUIRE)
        self._seen = 0
        self._abandoned_at = 0.0

    def is_new(self, entry: Entry) -> bool:
        """Return whether the holder has written the key since the last `note`."""
        self.holder, self.unavailable = entry.value, None
        return entry.mod_revision != self._seen

    def note(self, entry: Entry, ttl: int) -> None:
        """Note a write of the holder, whose lease has a time to live of `ttl` seconds."""
        self._seen = entry.mod_revision
        self._abandoned_at = asyncio.get_running_loop().time() + ttl

    def is_abandoned(self, entry: Entry) -> bool:
        """Return whether the holder has not written the key for longer than its time to live."""
        return entry.mod_revision == self._seen and asyncio.get_running_loop().time() > self._abandoned_at

    def recheck_s(self) -> float:
        """Return the seconds after which the waiter looks at the key again."""
        left = self._abandoned_at - asyncio.get_running_loop().time()
        return min(_RECHECK_S, left + _MARGIN_S) if left > 0 else _RECHECK_S
