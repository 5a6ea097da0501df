"""Alpha's work in the seed: lead until the Alpha in the cluster takes over, then only keep the connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from reside.alpha.loop import lead

if TYPE_CHECKING:
    from reside.alpha.state import Alpha


class Leader:
    """Runs Alpha as the leader until `stop` is called. Call both methods in the same event loop."""

    def __init__(self) -> None:
        self._enough = asyncio.Event()
        self._ended = asyncio.Event()

    async def run(self, alpha: Alpha) -> None:
        """Lead until `stop` is called, then wait until cancelled."""
        leading = asyncio.create_task(lead(alpha))
        enough = asyncio.create_task(self._enough.wait())
        try:
            await asyncio.wait({leading, enough}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leading.cancel()
            enough.cancel()
            await asyncio.wait({leading, enough})
        if not leading.cancelled():
            leading.result()
        alpha.lease = None
        self._ended.set()
        await asyncio.Event().wait()

    async def stop(self, _alpha: Alpha) -> None:
        """Stop leading, and wait until the lease is released."""
        self._enough.set()
        await self._ended.wait()
