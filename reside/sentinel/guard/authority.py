"""What this Sentinel may do to live objects on its own: pure state.

    starting   nobody has said yet whether another one leads: restore what is missing, change nothing
    leading    the lease is ours: everything
    orphaned   it was ours, and etcd is away: go on repairing, since etcd may be what must be restored
    following  another one leads, and lives, since its lease did not run out: nothing

Everything is idempotent, so two that repair at once do no harm but for work; two that wish differently would. That is
why who has never led, or follows, restores at most what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

_log = structlog.get_logger(__name__)

State = Literal["starting", "leading", "orphaned", "following"]


class Authority:
    """The present state, and who is told of changes."""

    def __init__(self) -> None:
        self.state: State = "starting"
        self._listeners: list[Callable[[], None]] = []

    @property
    def may_restore(self) -> bool:
        """Whether missing objects may be created."""
        return self.state != "following"

    @property
    def may_change(self) -> bool:
        """Whether objects that exist may be changed back."""
        return self.state in ("leading", "orphaned")

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after every change of state."""
        self._listeners.append(listener)

    def lead(self) -> None:
        """The lease is ours."""
        self._to("leading")

    def follow(self) -> None:
        """Another one has the lease, and renews it."""
        self._to("following")

    def lose_etcd(self) -> None:
        """Nobody can say who has the lease."""
        self._to("orphaned" if self.may_change else "starting")

    def _to(self, state: State) -> None:
        if state == self.state:
            return
        _log.info("authority", before=self.state, now=state)
        self.state = state
        for listener in self._listeners:
            listener()
