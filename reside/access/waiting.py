"""Wait for a cluster: `reside.common.polling`, with the error `NotReady`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from reside.common import polling
from reside.common.polling import DeadlineExceeded
from reside.model.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def until(look: Callable[[], Awaitable[T]], what: str, deadline: float) -> T:
    """Return the result of `look` as soon as it does not raise `Missing`.

    Args:
        look: reads the current state.
        what: the state that is waited for, for the error.
        deadline: deadline in seconds.

    Raises:
        NotReady: the deadline passed; the message says what was missing.
    """
    try:
        return await polling.until(look, deadline)
    except DeadlineExceeded as missing:
        raise NotReady(f"{what} was not reached in {deadline:.0f} s: {missing}") from None
