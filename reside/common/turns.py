"""Let tasks of one event loop take turns, so that many that become ready at once do not hold it up.

An event loop runs all tasks that are ready before it looks at timers and sockets again. If a thousand tasks wait for
the same message, it stands still for a thousand times what each of them computes: a lease is not renewed, and requests
time out. So a task takes a turn right before it computes something. A task that computes much goes on in the next round
after a part of it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

_Item = TypeVar("_Item")


async def in_rounds(items: Iterable[_Item], count: int) -> AsyncIterator[_Item]:
    """Yield items, at most `count` of them in each round of the event loop."""
    for number, item in enumerate(items, 1):
        yield item
        if number % count == 0:
            await asyncio.sleep(0)


class Turns:
    """At most one task computes in each round of the event loop; the others wait, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False

    async def take(self) -> None:
        """Wait for a turn. It lasts until the task awaits something else, and need not be given back."""
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            loop.call_soon(self._next)
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next(self) -> None:
        """Give the next turn, in the round after this one."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # its task was cancelled
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._is_taken = False
