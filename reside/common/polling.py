"""Wait for a state that nothing announces: look again and again until it is there or the deadline has passed.

Where a change is announced (an event, a watch), wait for that instead. The pauses are a back-off: short at first, since
most states are reached soon, and bounded, so that a late one is noticed soon, too.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from reside.common.backoff import Backoff, Retries

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

LOCAL: Final = Backoff(first=0.02, longest=0.25)
"""Pauses between looks at this machine, which cost next to nothing."""
REMOTE: Final = Backoff(first=0.3, longest=0.3)
"""Pauses between looks that each cost a request: short against what is waited for, long against a request."""


class Missing(Exception):  # noqa: N818 - no fault: what a look raises while the state is not there yet
    """Not there yet; the message says what is still missing."""


class DeadlineExceeded(Exception):  # noqa: N818 - named after what happened, as gRPC does
    """The state was not there in time; the message says what was still missing."""

    transient = True


async def until(look: Callable[[], Awaitable[T]], deadline: float, pauses: Backoff = REMOTE) -> T:
    """Return what `look` returns, as soon as it does not raise `Missing` any more.

    Args:
        look: reads the present state; cancelled when the deadline passes.
        deadline: seconds to wait at most.
        pauses: between two looks.

    Raises:
        DeadlineExceeded: the deadline passed.
    """
    missing = "it was never seen"
    retries = Retries(pauses)
    try:
        with anyio.fail_after(deadline):
            while True:
                try:
                    return await look()
                except Missing as reason:
                    missing = str(reason)
                await anyio.sleep(retries.failed())
    except TimeoutError:
        raise DeadlineExceeded(missing) from None


def wait_until(condition: Callable[[], bool], deadline: float, pauses: Backoff = LOCAL) -> bool:
    """Wait until `condition` is true, on a thread; what it raises ends the wait.

    Args:
        condition: reads the present state; called at least once.
        deadline: seconds to wait at most.
        pauses: between two looks.

    Returns:
        whether it was true in time.
    """
    end = time.monotonic() + deadline
    retries = Retries(pauses)
    while not condition():
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(retries.failed(), left))
    return True
