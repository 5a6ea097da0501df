"""Poll until a state is reached or a deadline passes.

Use it only for states without an event or a watch. The pauses are a back-off: short at first, because most states are
reached soon, and limited, so that a late state is noticed soon, too.
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
"""Pauses between polls of this machine, which cost next to nothing."""
REMOTE: Final = Backoff(first=0.3, longest=0.3)
"""Pauses between polls that each cost a request."""


class Missing(Exception):  # noqa: N818 - not an error: raised by a poll while the state is not reached
    """The state is not reached yet; the message says what is missing."""


class DeadlineExceeded(Exception):  # noqa: N818 - named after what happened, as gRPC does
    """The state was not reached in time; the message says what was missing."""

    transient = True


async def until(look: Callable[[], Awaitable[T]], deadline: float, pauses: Backoff = REMOTE) -> T:
    """Return the result of `look` as soon as it does not raise `Missing`.

    Args:
        look: reads the current state; cancelled when the deadline passes.
        deadline: seconds to wait at most.
        pauses: the pauses between two reads of the state.

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
    """Wait until `condition` is true, blocking the thread; an error that it raises ends the wait.

    Args:
        condition: reads the current state; called at least once.
        deadline: seconds to wait at most.
        pauses: the pauses between two reads of the state.

    Returns:
        whether it became true in time.
    """
    end = time.monotonic() + deadline
    retries = Retries(pauses)
    while not condition():
        remaining = end - time.monotonic()
        if remaining <= 0:
            return False
        time.sleep(min(retries.failed(), remaining))
    return True
