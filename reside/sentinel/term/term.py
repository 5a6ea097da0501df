"""One term of the leading Sentinel: its queues, and the subscriptions that add keys to them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from reside.common.workqueue import WorkQueue
from reside.replica.background import in_background
from reside.sentinel.backoff import APPLY_BACKOFF
from reside.sentinel.contract.data import open_data
from reside.sentinel.errors import judge
from reside.sentinel.term.applier import Applier
from reside.sentinel.term.context import TermContext
from reside.sentinel.term.previews import Previewer
from reside.sentinel.term.prune import Pruner
from reside.sentinel.term.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from reside.jazz import CoMap
    from reside.locks import Held
    from reside.replica import Context
    from reside.sentinel.engine import StackEngine
    from reside.sentinel.guard.guard import Guard

_log = structlog.get_logger(__name__)

PARALLEL_STACKS: Final = 4
"""Maximum number of stacks that are handled in parallel. `EngineSettings.processes` limits the engine's processes."""
_DRAIN_S: Final = 10.0
"""Deadline in seconds for running operations to finish before the engine is stopped."""
_REPORT_S: Final = 3.0
"""Deadline in seconds for the last reports to be written."""


class Term:
    """The queues that run while this Sentinel leads."""

    def __init__(self, context: TermContext) -> None:
        self._context = context
        self._reporter = Reporter(context)
        self._stacks = WorkQueue("stack", self._handle, workers=PARALLEL_STACKS, backoff=APPLY_BACKOFF, judge=judge)
        self._applier = Applier(context, self._reporter, self._stacks.add)
        self._previewer = Previewer(context)
        self._previews = WorkQueue("preview", self._previewer.handle, workers=1, backoff=APPLY_BACKOFF, judge=judge)
        self._pruner = Pruner(context, self._stacks, self._applier, self._reporter)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Handle stacks and candidates while the block is open; cancel what still runs at its end."""
        self.examine_all()
        try:
            async with in_background(
                stacks=self._stacks.run,
                previews=self._previews.run,
                reports=self._reporter.queue.run,
                prune=self._pruner.run,
                desired=partial(_follow, self._context.data.desired, self._desired_changed),
                candidates=partial(_follow, self._context.data.previews, self._previews_changed),
            ):
                yield
        finally:
            self._pruner.close()
            self._reporter.close()
            self._applier.close()

    def examine_all(self, after: float = 0.0) -> None:
        """Queue every stack and candidate, in `after` seconds, because permissions may have changed."""
        self._desired_changed(self._context.data.desired, after)
        self._previews_changed(self._context.data.previews, after)

    async def finish(self) -> None:
        """Start nothing more, let running operations finish, and write their reports."""
        try:
            async with asyncio.timeout(_DRAIN_S):
                await asyncio.gather(self._stacks.drain(), self._previews.drain())
        except TimeoutError:
            running = self._stacks.statistics().running + self._previews.statistics().running
            _log.warning("operations exceeded the deadline; stopping them", seconds=_DRAIN_S, running=running)
        await self._context.engine.stop()
        try:
            async with asyncio.timeout(_REPORT_S):
                await self._reporter.queue.wait_idle()
        except TimeoutError:
            _log.warning("last reports not written; the next leader writes them")

    async def _handle(self, name: str) -> None:
        try:
            await self._applier.handle(name)
        finally:
            self._pruner.wake()

    def _desired_changed(self, desired: CoMap, after: float = 0.0) -> None:
        known = {*self._context.guard.store.stacks, *self._reporter.known(), *self._context.data.reports.keys()}
        for name in {*desired.keys(), *known}:
            self._stacks.add(name, after)

    def _previews_changed(self, previews: CoMap, after: float = 0.0) -> None:
        for key in set(previews.keys()) | set(self._context.data.results.keys()):
            self._previews.add(key, after)


async def begin(context: Context, guard: Guard, engine: StackEngine, lease: Held) -> Term:
    """Start a term with the present data in Jazz and on the volume."""
    guard.reload()
    return Term(TermContext(context, await open_data(context), guard, engine, lease))


async def _follow(value: CoMap, handle: Callable[[CoMap], None]) -> None:
    async with value.watch() as changes:
        async for changed in changes:
            handle(changed)
