"""Poll until a state is reached or a deadline expires. All tests that wait for a state without an event use it.

At the deadline an `AssertionError` names the expected state and the last result. An error of a look ends the wait
immediately. A pause is at least as long as the look before it, because many looks start a program, which would delay
what they wait for.
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
"""Between looks at this process, where some states are short-lived."""
_LONGEST_PAUSE_SYNC_S = 0.2
"""Between looks of which most start a process."""
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
    within: float = 90.0,
    show: Callable[[T], str] = repr,
) -> T:
    """Return the first result of a look that matches.

    Args:
        what: the expected state, for the message.
        look: a function or coroutine function that reads the current state.
        matches: returns whether a result is the expected one; by default, whether it is true.
        within: seconds until the deadline, which also cancels a look that does not return.
        show: returns a result as text for the message.

    Raises:
        AssertionError: no result matched in time.
    """
    last = _NOTHING
    try:
        async with asyncio.timeout(within) as deadline:
            for pause in _pauses(_LONGEST_PAUSE_S):
                began = time.monotonic()
                found: Any = look()
                seen: T = await found if isawaitable(found) else found
                if matches(seen):
                    return seen
                last = show(seen)
                await asyncio.sleep(max(pause, time.monotonic() - began))
    except TimeoutError:
        if not deadline.expired():
            raise  # the timeout of the look itself
    raise AssertionError(_complaint(what, within, last))


def eventually_sync(
    what: str,
    look: Callable[[], T],
    matches: Callable[[T], object] = bool,
    *,
    within: float = 90.0,
    show: Callable[[T], str] = repr,
) -> T:
    """Return the first result of a look that matches, outside of an event loop; see `eventually`.

    The last look begins at the deadline; a look that does not return is not interrupted.
    """
    deadline = time.monotonic() + within
    for pause in _pauses(_LONGEST_PAUSE_SYNC_S):
        began = time.monotonic()
        seen = look()
        if matches(seen):
            return seen
        now = time.monotonic()
        if now >= deadline:
            break
        time.sleep(min(max(pause, now - began), deadline - now))
    raise AssertionError(_complaint(what, within, show(seen)))


def _pauses(longest: float) -> Iterator[float]:
    """Yield the pauses between looks, in seconds; they grow up to `longest`."""
    pause = _FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(pause * 1.5, longest)


def _complaint(what: str, within: float, last: str) -> str:
    return f"expected {what} within {within:g} s; last seen: {last}"
