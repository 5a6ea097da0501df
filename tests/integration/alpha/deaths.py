"""The end of Alpha's process at an exact write: all earlier writes are on the server, no later one exists."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from support.eventually import eventually

from reside.alpha.app import started
from reside.alpha.loop import lead

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.alpha_cluster import AlphaCluster

    from reside.alpha.state import Alpha
    from reside.replica import Context


class Death(BaseException):
    """The simulated end of the process."""


@contextmanager
def death_at(alpha: Alpha | Context, point: int) -> Iterator[asyncio.Event]:
    """Make the node of Alpha or of another replica fail at its `point`-th write from now on, and set the event then."""
    host, count, dead = alpha.node._host, 0, asyncio.Event()
    real_private, real_group = host.write_private, host.write_trusting

    def counted(real: Any) -> Any:
        def write(*args: Any, **kwargs: Any) -> None:
            nonlocal count
            if dead.is_set():
                raise Death
            count += 1
            if count >= point:
                dead.set()
                raise Death
            real(*args, **kwargs)

        return write

    host.write_private, host.write_trusting = counted(real_private), counted(real_group)  # type: ignore[method-assign]
    try:
        yield dead
    finally:
        host.write_private, host.write_trusting = real_private, real_group  # type: ignore[method-assign]


async def lead_until_killed(cluster: AlphaCluster, point: int) -> None:
    """Let an Alpha lead until it dies before its `point`-th write."""
    async with started(cluster.settings()) as alpha:
        with death_at(alpha, point) as dead:
            leading = asyncio.create_task(lead(alpha))
            await eventually("the death", lambda: dead.is_set() or leading.done(), within=90)
            assert dead.is_set()
            leading.cancel()
            await asyncio.gather(leading, return_exceptions=True)
