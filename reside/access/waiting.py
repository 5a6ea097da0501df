"""The seed's one way to wait: look, and look again, until something is there or the deadline has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

from reside.model.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

INTERVAL = 0.3
"""Seconds between two looks: short against what is waited for, long against what a look costs."""


class Missing(Exception):  # noqa: N818 - no fault: what a look raises while the thing is not there yet
    """Not there yet; the message says what is still missing."""


async def until(look: Callable[[], Awaitable[T]], what: str, deadline: float) -> T:
    """What ``look`` returns, as soon as it does not raise ``Missing`` any more.

    Args:
        look: reads the present state.
        what: what is waited for, for the error.
        deadline: seconds to wait at most.

    Raises:
        NotReady: the deadline passed; says what was still missing.
    """
    missing = "it was never seen"
    try:
        with anyio.fail_after(deadline):
            while True:
                try:
                    return await look()
                except Missing as reason:
                    missing = str(reason)
                await anyio.sleep(INTERVAL)
    except TimeoutError:
        raise NotReady(f"{what} was not reached in {deadline:.0f} s: {missing}") from None
