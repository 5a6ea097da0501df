"""The end of an event-loop turn: what changed in the turn is looked after once, in a fixed order.

One callback does it all, because each that follows another costs a turn of the loop, and with it the latency of every
write that answers another. For the same reason what is received is looked after at once, in the turn that received it.
"""

import asyncio
from collections.abc import Callable


class Turn:
    """Plans the end of the turn that runs.

    Args:
        end: What is done at the end of a turn in which `plan` was called, however often. Gives whether there is more
            to do in another turn.
    """

    def __init__(self, end: Callable[[], bool]) -> None:
        self._end = end
        self._planned = False
        self._is_under_way = False

    def plan(self) -> None:
        """Something happened that the end of the turn must look after."""
        if not self._planned:
            self._planned = True
            if not self._is_under_way:
                asyncio.get_running_loop().call_soon(self._run)

    def run(self, part: Callable[..., None], *arguments: object) -> None:
        """Does all that belongs to a turn, and ends it."""
        self._is_under_way = True
        try:
            part(*arguments)
        finally:
            self._is_under_way = False
            self._run()

    def _run(self) -> None:
        if not self._planned:
            return  # another part has ended the turn meanwhile
        self._is_under_way, more = True, False
        try:
            more = self._end()
        finally:
            self._is_under_way = self._planned = False
            if more:
                self.plan()
