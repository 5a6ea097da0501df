"""The one way in which tests wait for a state that has no event: look, and look again, until a deadline.

A wait without success raises an `AssertionError` with the expectation and the last result. What a look raises
ends the wait at once.
"""

from __future__ import annotations

import asyncio
import time
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

T = TypeVar("T")
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.02
"""Between looks at what is in this process: some states last for a moment only."""
_LONGEST_PAUSE_SYNC_S = 0.2
"""Between looks that mostly start a process each."""
_NOTHING = "nothing, the first look did not return"


@overload
async def eventually(
    what: str,
    look: Callable[[], Awaitable[T]],
    matches: Callable[[T], object] = ...,
    *,
    within: float = ...,
    show: Callable[[T], str] = ...,
) -> T: ...
@overload
async def eventually(
    what: str,
    look: Callable[[], T],
    matches: Callable[[T], object] = ...,
    *,
    within: float = ...,
    show: Callable[[T], str] = ...,
) -> T: ...
async def eventually(
    what: str,
    look: Callable[[], Awaitable[T] | T],
    matches: Callable[[T], object] = bool,
    *,
    within: float = 30.0,
    show: Callable[[T], str] = repr,
) -> T:
    """Return the first result of a look that matches.

    Args:
        what: what is expected, for the message.
        look: reads the present state; a function or a coroutine function.
        matches: whether a result is the expected one; without it, whether the result is true.
        within: seconds until the wait ends, also that for a look that does not return.
        show: how a result is shown in the message.

    Raises:
        AssertionError: no result matched in time.
    """
    last = _NOTHING
    try:
        async with asyncio.timeout(within) as deadline:
            for pause in _pauses(_LONGEST_PAUSE_S):
                found: Any = look()
                seen: T = await found if isawaitable(found) else found
                if matches(seen):
                    return seen
                last = show(seen)
                await asyncio.sleep(pause)
    except TimeoutError:
        if not deadline.expired():
            raise  # the look's own
    raise AssertionError(_complaint(what, within, last))


def eventually_sync(
    what: str,
    look: Callable[[], T],
    matches: Callable[[T], object] = bool,
    *,
    within: float = 30.0,
    show: Callable[[T], str] = repr,
) -> T:
    """Return the first result of a look that matches, outside of an event loop; see `eventually`.

    The last look begins at the deadline; a look that does not return is not interrupted.
    """
    deadline = time.monotonic() + within
    for pause in _pauses(_LONGEST_PAUSE_SYNC_S):
        seen = look()
        if matches(seen):
            return seen
        left = deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(pause, left))
    raise AssertionError(_complaint(what, within, show(seen)))


def _pauses(longest: float) -> Iterator[float]:
    """Yield seconds between looks without end, which grow up to `longest`."""
    pause = _FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(pause * 1.5, longest)


def _complaint(what: str, within: float, last: str) -> str:
    return f"expected {what} within {within:g} s; last seen: {last}"
