"""The end of an event-loop turn: what changed in the turn is looked after once, in the next one, in a fixed order.

One callback does it all, because each that follows another costs a turn of the loop, and with it the latency of every
write that answers another.
"""

import asyncio
from collections.abc import Callable


class Turn:
    """Plans the end of the turn that runs.

    Args:
        end: what is done at the end of a turn in which `schedule` was called, however often.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._scheduled = False

    def schedule(self) -> None:
        """Something happened that the end of the turn must look after."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        self._end()
