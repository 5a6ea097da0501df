"""A limit on concurrent loads: the others wait in a queue, so that a reconnect with many values overloads no one."""

from collections.abc import Callable
from typing import Final

from reside.jazz.memory.covalue import Core

MAX_IN_FLIGHT: Final = 1000
"""The limit of the JavaScript client."""
_EXPIRES_AFTER_S: Final = 60.0
"""A load that is unanswered for this long no longer blocks others. A working server answers every load."""


class LoadQueue:
    """The loads in flight on one connection, and a queue of those that wait.

    Args:
        ask: sends the `load` for a value.
        clock: returns seconds; read only when something happens, so that no timer is needed.
    """

    def __init__(self, ask: Callable[[Core], None], clock: Callable[[], float]) -> None:
        self._ask = ask
        self._clock = clock
        self._in_flight: dict[str, float] = {}
        self._queued: dict[str, Core] = {}

    @property
    def in_flight(self) -> int:
        """The number of loads in flight."""
        return len(self._in_flight)

    def add(self, core: Core) -> None:
        """Load a value now, or queue it."""
        if len(self._in_flight) < MAX_IN_FLIGHT:
            self._in_flight[core.co_id] = self._clock()
            self._ask(core)
        else:
            self._queued[core.co_id] = core

    def answered(self, co_id: str) -> None:
        """Remove a load that was answered or is no longer needed, and start the next one."""
        self._queued.pop(co_id, None)
        if self._in_flight.pop(co_id, None) is not None:
            self._next()

    def expire(self) -> None:
        """If others are queued, give up on loads that have been unanswered for too long."""
        if not self._queued:
            return
        overdue = self._clock() - _EXPIRES_AFTER_S
        for co_id in [co_id for co_id, sent_at in self._in_flight.items() if sent_at < overdue]:
            del self._in_flight[co_id]
        self._next()

    def reset(self) -> None:
        """Clear the queue for a new connection."""
        self._in_flight.clear()
        self._queued.clear()

    def _next(self) -> None:
        while self._queued and len(self._in_flight) < MAX_IN_FLIGHT:
            self.add(self._queued.pop(next(iter(self._queued))))
