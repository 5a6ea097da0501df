"""Ends a block from outside: when its lock is lost, the block is cancelled and leaves with `LockLost`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.locks.held import Held


@asynccontextmanager
async def kept(held: Held) -> AsyncIterator[None]:
    """Keep `held` alive while the block runs; cancel the block when it is lost.

    Like in `asyncio.timeout`, only the cancellation that we asked for is turned into the error: the count of
    cancellation requests tells it from one that came from outside.

    Raises:
        LockLost: the lock was lost while the block ran.
    """
    owner = asyncio.current_task()
    if owner is None:
        raise RuntimeError("a lock is held by a task: await it inside of one")
    cancelling, told = owner.cancelling(), False

    def tell(keeper: asyncio.Task[None]) -> None:
        nonlocal told
        if keeper.cancelled():
            return
        if (error := keeper.exception()) is not None:
            held.lose(f"keeping it alive failed: {error!r}")
        told = True
        owner.cancel()

    keeper = asyncio.create_task(held.keep(), name=f"keep {held.key}")
    keeper.add_done_callback(tell)
    try:
        try:
            yield
        finally:
            keeper.cancel()
            await asyncio.wait([keeper])
    except asyncio.CancelledError as error:
        if told and owner.uncancel() <= cancelling:
            raise held.loss() from error
        raise
