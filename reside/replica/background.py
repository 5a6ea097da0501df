"""Background loops of a replica. None may end while the replica runs: if one does, the replica ends with its error."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@asynccontextmanager
async def in_background(**loops: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run endless loops while the block is open; if one fails, cancel the block and raise its error.

    Args:
        loops: coroutine functions by the name of their task.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_endless(name, loop), name=name) for name, loop in loops.items()]
            yield
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as failed:
        if len(failed.exceptions) == 1:
            raise failed.exceptions[0] from None  # the caller gets the error itself, not a group
        raise


async def _endless(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    await loop()
    raise RuntimeError(f"the loop {name} ended, but it must run until it is cancelled: this is a bug")
