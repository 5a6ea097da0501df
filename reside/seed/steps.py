"""The bootstrap's steps as plain functions: what its dynamic resources call. Each may be run again at any time.

They are synchronous, because Pulumi's provider process calls them so; each runs one coroutine in a loop of its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from reside.seed import platform
from reside.seed.kubernetes import connect, wait_for_stateful_set

if TYPE_CHECKING:
    from stacks.settings import BootstrapSettings

Outputs = dict[str, Any]


def ready(settings: BootstrapSettings) -> Outputs:
    """Wait until Jazz and etcd serve."""

    async def wait() -> None:
        async with connect(settings.target) as client:
            for name in (platform.JAZZ, platform.ETCD):
                await wait_for_stateful_set(client, name, settings.deadline)

    asyncio.run(wait())
    return {}
