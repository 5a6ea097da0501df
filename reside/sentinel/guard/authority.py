"""What this Sentinel process may currently do to live objects. Plain state.

    starting   it is not known whether another process leads: create missing objects, change nothing
    leading    this process holds the lease: create and change
    orphaned   this process held the lease, and etcd is unavailable: continue, because etcd may be what must be restored
    following  another process leads and renews its lease: nothing

Repairs are idempotent, so two processes may repair towards the same desired state at once. Two with different
desired states would revert each other's changes. So a process that has never led only creates missing objects, and one
that follows does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

_log = structlog.get_logger(__name__)

State = Literal["starting", "leading", "orphaned", "following"]


class Authority:
    """The current state, with listeners for its changes."""

    def __init__(self) -> None:
        self.state: State = "starting"
        self._listeners: list[Callable[[], None]] = []

    @property
    def may_restore(self) -> bool:
        """Whether missing objects may be created."""
        return self.state != "following"

    @property
    def may_change(self) -> bool:
        """Whether drift of existing objects may be reverted."""
        return self.state in ("leading", "orphaned")

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change of state."""
        self._listeners.append(listener)

    def lead(self) -> None:
        """Note that this process holds the lease."""
        self._set("leading")

    def follow(self) -> None:
        """Note that another process holds the lease and renews it."""
        self._set("following")

    def lose_etcd(self) -> None:
        """Note that the holder of the lease is unknown, because etcd is unavailable."""
        self._set("orphaned" if self.may_change else "starting")

    def _set(self, state: State) -> None:
        if state == self.state:
            return
        _log.info("authority changed", before=self.state, now=state)
        self.state = state
        for listener in self._listeners:
            listener()
