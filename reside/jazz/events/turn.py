"""The end of an event-loop turn: what changed in the turn is processed once, in the next turn, in a fixed order.

One callback does all of it. With a second callback, a write in response to another write would be one turn later.
"""

import asyncio
from collections.abc import Callable


class Turn:
    """Schedules the end of the current turn.

    Args:
        end: called at the end of each turn in which `schedule` was called, once.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._scheduled = False

    def schedule(self) -> None:
        """Run `end` after the current turn."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        self._end()
