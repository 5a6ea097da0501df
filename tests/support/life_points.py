"""The points of an operation at which a test ends or pauses the process: counted, and one of them chosen.

A point is before each write, each request to etcd that changes something and each wait for an acknowledgement; with
`every`, at each suspension (what is awaited may happen or not) and at each resumption (it has happened), too.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

T = TypeVar("T")
FLUSH = "flush"
"""The point at which a life waits for the acknowledgement of its writes."""


class Death(BaseException):
    """The simulated end of the process."""


class Points:
    """Counts the points of an operation, and ends the life at one of them.

    Args:
        at: the number of points to pass before.
        die: called at the end of the life.
        every: whether each suspension and resumption is a point, too.
        pauses: whether the life is paused at the point instead of ended. Then only waits for an acknowledgement are
            points, and with `every` suspensions and requests.

    Attributes:
        last: the point that was passed last.
        is_dead: whether the life has ended.
        is_counting: whether points are passed; otherwise the operation waits for others.
        paused: set when the life is paused.
        thawed: set by the test to continue it.
    """

    def __init__(self, at: int, die: Callable[[], None], *, every: bool = False, pauses: bool = False) -> None:
        self._left = at
        self._die = die
        self.every = every
        self.pauses = pauses
        self.paused = asyncio.Event()
        self.thawed = asyncio.Event()
        self.last = ""
        self.is_dead = False
        self.is_counting = True

    def pass_by(self, what: str) -> None:
        """Pass a point.

        Raises:
            Death: it is the chosen one, or the life has ended.
        """
        if not self.is_dead:
            if not self.is_counting:
                return
            self.last = what
            self._left -= 1
            if self._left >= 0 or self.paused.is_set():
                return
            if self.pauses:
                self.paused.set()
                return
            self.is_dead = True
            self._die()
        raise Death

    async def reach(self, what: str) -> None:
        """Pass a point at which the life can be paused."""
        self.pass_by(what)
        if self.paused.is_set():
            await self.thawed.wait()


class Steps:
    """An awaitable that runs a coroutine, and passes a point at each of its suspensions and resumptions."""

    def __init__(self, work: Awaitable[T], points: Points) -> None:
        self._work = work
        self._points = points

    def __await__(self) -> Generator[Any, Any, Any]:
        """Forward what the coroutine awaits."""
        steps: Any = self._work.__await__()
        error: BaseException | None = None
        while True:
            try:
                awaited = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as done:
                return done.value
            error = self._passed("suspension")
            if error is not None:
                continue
            try:
                yield awaited
            except BaseException as raised:  # noqa: BLE001 - forwarded to the coroutine
                error = raised
            else:
                error = self._passed("resumption")

    def _passed(self, what: str) -> Death | None:
        """Pass a point; return the death, once. What a dead coroutine awaits while it unwinds is no point."""
        if self._points.every and not self._points.is_dead:
            try:
                self._points.pass_by(what)
            except Death as death:
                return death
        return None
