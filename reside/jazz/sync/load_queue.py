"""How many values are asked for at once: the rest wait in line, so that a reconnect with many values floods nobody."""

from collections.abc import Callable
from typing import Final

from reside.jazz.memory.covalue import Core

MAX_IN_FLIGHT: Final = 1000
"""As in the JavaScript client."""
_FORGOTTEN_AFTER_S: Final = 60.0
"""A question that was not answered for this long holds up no other; the server answers each, or is broken."""


class LoadQueue:
    """The questions on their way on one connection, and those that wait for their turn.

    Args:
        ask: sends the question for a value.
        clock: gives seconds; it is looked at when something happens, so that no timer is needed.
    """

    def __init__(self, ask: Callable[[Core], None], clock: Callable[[], float]) -> None:
        self._ask = ask
        self._clock = clock
        self._asked: dict[str, float] = {}
        self._queued: dict[str, Core] = {}

    @property
    def in_flight(self) -> int:
        """How many questions are on their way."""
        return len(self._asked)

    def add(self, core: Core) -> None:
        """Ask for a value now or in its turn."""
        if len(self._asked) < MAX_IN_FLIGHT:
            self._asked[core.co_id] = self._clock()
            self._ask(core)
        else:
            self._queued[core.co_id] = core

    def answered(self, co_id: str) -> None:
        """Return a question was answered, or nobody wants the answer any more: the next one's turn."""
        self._queued.pop(co_id, None)
        if self._asked.pop(co_id, None) is not None:
            self._next()

    def expire(self) -> None:
        """Give up on the questions that were not answered for long, if others wait for their turn."""
        if not self._queued:
            return
        overdue = self._clock() - _FORGOTTEN_AFTER_S
        for co_id in [co_id for co_id, asked in self._asked.items() if asked < overdue]:
            del self._asked[co_id]
        self._next()

    def reset(self) -> None:
        """Return a new connection: nothing was asked."""
        self._asked.clear()
        self._queued.clear()

    def _next(self) -> None:
        while self._queued and len(self._asked) < MAX_IN_FLIGHT:
            self.add(self._queued.pop(next(iter(self._queued))))
