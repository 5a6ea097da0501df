"""Waiting for a cluster: `reside.common.polling` with the error of a cluster that is not ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from reside.common import polling
from reside.common.polling import DeadlineExceeded
from reside.model.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def until(look: Callable[[], Awaitable[T]], what: str, deadline: float) -> T:
    """Return what `look` returns, as soon as it does not raise `Missing` any more.

    Args:
        look: reads the present state.
        what: what is waited for, for the error.
        deadline: seconds to wait at most.

    Raises:
        NotReady: the deadline passed; says what was still missing.
    """
    try:
        return await polling.until(look, deadline)
    except DeadlineExceeded as missing:
        raise NotReady(f"{what} was not reached in {deadline:.0f} s: {missing}") from None
