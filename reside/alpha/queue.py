"""The leader's work queue: keys only, each handled by one worker at a time, failures again after a pause.

Level-triggered: whoever handles a key reads the present state and never trusts the event, so a key that is put many
times while it waits is handled once, and one that is put while it is handled is handled once more.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from reside.common.backoff import DEFAULT, Backoff
from reside.common.transience import is_expected, is_transient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_log = structlog.get_logger(__name__)

WORKERS: Final = 4


class Queue:
    """Keys to handle.

    Args:
        handle: brings the world of one key to where it should be; raises to be called again later.
    """

    def __init__(self, handle: Callable[[str], Awaitable[None]], backoff: Backoff = DEFAULT) -> None:
        self._handle = handle
        self._backoff = backoff
        self._waiting: dict[str, None] = {}
        self._running: set[str] = set()
        self._failures: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()

    def put(self, key: str) -> None:
        """Ask for a key to be handled, now or after the handling that is under way."""
        if timer := self._timers.pop(key, None):
            timer.cancel()
        self._waiting[key] = None
        self._changed.set()

    def later(self, key: str, pause: float) -> None:
        """Ask for a key to be handled in ``pause`` seconds, unless somebody asks sooner."""
        if key not in self._waiting and key not in self._timers:
            self._timers[key] = asyncio.get_running_loop().call_later(pause, self.put, key)

    async def run(self) -> None:
        """Handle keys for ever; ends only by cancellation or by an error that no later attempt can cure."""
        try:
            async with asyncio.TaskGroup() as group:
                limit = asyncio.Semaphore(WORKERS)
                while True:
                    await self._changed.wait()
                    self._changed.clear()
                    for key in [key for key in self._waiting if key not in self._running]:
                        del self._waiting[key]
                        self._running.add(key)
                        group.create_task(self._one(key, limit), name=f"alpha {key}")
        finally:
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()
            self._running.clear()

    async def _one(self, key: str, limit: asyncio.Semaphore) -> None:
        try:
            async with limit:
                await self._handle(key)
            self._failures.pop(key, None)
        except Exception as error:
            if not is_expected(error):
                raise
            self._again(key, error)
        finally:
            self._running.discard(key)
            self._changed.set()

    def _again(self, key: str, error: Exception) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        pause = self._backoff.pause(count)
        report = _log.info if is_transient(error) else _log.warning
        report("will try again", key=key, error=str(error), kind=type(error).__name__, attempt=count, pause_s=pause)
        self.later(key, pause)
