"""The queue: runs a handler for keys, lane by lane; ``lanes`` decides, this carries it out.

The handler either returns, or raises: an error of ``TERMINAL`` waits for a change, every other expected error is tried
again with a growing pause. Any other exception is a bug and ends the queue, and with it the process.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from reside.common.transience import is_expected
from reside.sentinel.errors import TERMINAL
from reside.sentinel.lanes import Lanes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from reside.common.backoff import Backoff

_log = structlog.get_logger(__name__)


def _own_lane(key: str) -> str:
    return key


class LaneQueue:
    """Keys to handle.

    Args:
        name: what is queued, for logs.
        handler: brings the thing called by a key to what it should be.
        limit: how many lanes are worked on at once.
        backoff: pauses after failures.
        lane_of: the lane of a key; None: each key has its own.
    """

    def __init__(
        self,
        name: str,
        handler: Callable[[str], Awaitable[None]],
        *,
        limit: int,
        backoff: Backoff,
        lane_of: Callable[[str], str] | None = None,
    ) -> None:
        self._name = name
        self._handler = handler
        self._lanes = Lanes(lane_of or _own_lane, limit, backoff)
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False

    def add(self, key: str, after: float = 0.0) -> None:
        """Note that ``key`` needs to be looked at, in ``after`` seconds at the earliest."""
        self._lanes.add(key, self._now() + after if after else 0.0)
        self._update()

    @property
    def idle(self) -> bool:
        """Whether nothing is handled, and nothing waits but for a later try."""
        return self._lanes.idle

    async def wait_idle(self) -> None:
        """Wait until the queue is idle."""
        await self._idle.wait()

    async def drain(self) -> None:
        """Take no further key, and wait for those that are being handled."""
        self._draining = True
        while self._lanes.running:
            self._changed.clear()
            await self._changed.wait()

    async def run(self) -> None:
        """Handle keys until cancelled; cancelling cancels the handlers, too."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                key = None if self._draining else self._lanes.take(self._now())
                if key is not None:
                    tasks.create_task(self._handle(key), name=f"{self._name} {key}")
                    continue
                try:
                    async with asyncio.timeout(self._lanes.next_due(self._now())):
                        await self._changed.wait()
                except TimeoutError:
                    continue  # a key that was put off is due

    async def _handle(self, key: str) -> None:
        try:
            await self._handler(key)
        except TERMINAL as error:
            _log.warning("waits for a change", queue=self._name, key=key, error=str(error))
            self._lanes.done(key)
        except Exception as error:
            if not is_expected(error):
                raise
            pause = self._lanes.failed(key, self._now())
            _log.warning("failed, tried again", queue=self._name, key=key, seconds=pause, error=str(error))
        except asyncio.CancelledError:
            self._lanes.done(key)
            raise
        else:
            self._lanes.done(key)
        self._update()

    def _update(self) -> None:
        self._changed.set()
        if self._lanes.idle:
            self._idle.set()
        else:
            self._idle.clear()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
