"""Background loops of a replica: none may end while it runs, so the end of one ends the replica, with its error."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


@asynccontextmanager
async def in_background(**loops: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run endless loops while the block is open; the failure of one cancels the block and is raised from it.

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
            raise failed.exceptions[0] from None  # the block's own error reaches the caller as it was raised
        raise


async def _endless(name: str, loop: Callable[[], Awaitable[None]]) -> None:
    await loop()
    raise RuntimeError(f"the loop {name} ended, which it never should: this is a bug")
