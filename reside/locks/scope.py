"""Cancel a block when its lock is lost; the block then raises `LockLost`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.locks.held import Held


@asynccontextmanager
async def kept_alive(held: Held) -> AsyncIterator[None]:
    """Keep `held` alive while the block runs; cancel the block when the lock is lost.

    As in `asyncio.timeout`, only the cancellation that was requested here becomes the error. The number of cancellation
    requests distinguishes it from one that was requested by others.

    Raises:
        LockLost: the lock was lost while the block ran.
    """
    owner = asyncio.current_task()
    if owner is None:
        raise RuntimeError("a lock must be held by a task: use it in a coroutine that runs as one")
    cancelling, cancelled_here = owner.cancelling(), False

    def cancel_owner(keeper: asyncio.Task[None]) -> None:
        nonlocal cancelled_here
        if keeper.cancelled():
            return
        if (error := keeper.exception()) is not None:
            held.mark_lost(f"keeping it alive failed: {error!r}")
        cancelled_here = True
        owner.cancel()

    keeper = asyncio.create_task(held.keep_alive(), name=f"keep alive {held.key}")
    keeper.add_done_callback(cancel_owner)
    try:
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.wait([keeper])
    except asyncio.CancelledError as error:
        if cancelled_here and owner.uncancel() <= cancelling:
            raise held.lost_error() from error
        raise
