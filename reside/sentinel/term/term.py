"""One term of the leading Sentinel: its queues, and the subscriptions that add keys to them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import structlog

from reside.common.workqueue import WorkQueue
from reside.replica.background import in_background
from reside.sentinel.backoff import APPLY_BACKOFF, ATTEMPTS
from reside.sentinel.contract.data import open_data
from reside.sentinel.errors import judge
from reside.sentinel.term.applier import Applier
from reside.sentinel.term.context import TermContext
from reside.sentinel.term.previews import Previewer
from reside.sentinel.term.prune import Pruner
from reside.sentinel.term.reader import Reader
from reside.sentinel.term.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from reside.jazz import Tracker
    from reside.locks import Held
    from reside.replica import Context
    from reside.sentinel.engine import StackEngine
    from reside.sentinel.guard.guard import Guard

_log = structlog.get_logger(__name__)

PARALLEL_STACKS: Final = 4
"""Maximum number of stacks that are applied in parallel. `EngineSettings.processes` limits the engine's processes."""
PARALLEL_PREVIEWS: Final = 2
"""Maximum number of previews beside them; one is left to fresh candidates if others fail again and again."""
_READERS: Final = 1000
"""Maximum number of stacks that are read in parallel: as many loads as a Jazz node has in flight. Nearly all of them
wait; so many entries that can't be read delay no other."""
_DRAIN_S: Final = 10.0
"""Deadline in seconds for running operations to finish before the engine is stopped."""
_REPORT_S: Final = 3.0
"""Deadline in seconds for the last reports to be written."""


class Term:
    """The queues that run while this Sentinel leads."""

    def __init__(self, context: TermContext) -> None:
        self._context = context
        self._reporter = Reporter(context)
        self._reads = WorkQueue("read", self._read, workers=_READERS, backoff=APPLY_BACKOFF, judge=judge)
        self._stacks = WorkQueue(
            "stack", self._apply, workers=PARALLEL_STACKS, backoff=APPLY_BACKOFF, judge=judge, attempts=ATTEMPTS
        )
        self._reader = Reader(context, self._reporter, self._reads.add, self._is_read)
        self._applier = Applier(context, self._reporter, self._reader, self._reads.add)
        self._previewer = Previewer(context)
        self._previews = WorkQueue(
            "preview", self._preview, workers=PARALLEL_PREVIEWS, backoff=APPLY_BACKOFF, judge=judge
        )
        self._pruner = Pruner(context, (self._reads, self._stacks), self._reader, self._reporter)
        self._desired = context.data.desired.track()
        self._candidates: Tracker | None = None
        self._unsubscribe: list[Callable[[], None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Handle stacks and candidates while the block is open; cancel what still runs at its end."""
        self._desired.take()
        self.examine_all()
        self._unsubscribe.append(self._context.data.desired.on_change(lambda _: self._desired_changed()))
        self._follow_previews()
        try:
            async with in_background(
                reads=self._reads.run,
                stacks=self._stacks.run,
                previews=self._previews.run,
                reports=self._reporter.queue.run,
                prune=self._pruner.run,
            ):
                yield
        finally:
            for unsubscribe in self._unsubscribe:
                unsubscribe()
            self._pruner.close()
            self._reporter.close()
            self._applier.close()
            self._reader.close()

    def examine_all(self, after: float = 0.0) -> None:
        """Queue every stack and candidate, in `after` seconds, because permissions may have changed."""
        data = self._context.data
        known = {*self._context.guard.store.stacks, *self._reporter.known(), *data.reports.keys()}
        for name in {*data.desired.keys(), *known}:
            self._reads.add(name, after)
        for key in {*data.previews.keys(), *data.results.keys()}:
            self._previews.add(key, after)

    async def finish(self) -> None:
        """Start nothing more, let running operations finish, and write their reports."""
        try:
            async with asyncio.timeout(_DRAIN_S):
                await asyncio.gather(self._reads.drain(), self._stacks.drain(), self._previews.drain())
        except TimeoutError:
            running = self._stacks.statistics().running + self._previews.statistics().running
            _log.warning("operations exceeded the deadline; stopping them", seconds=_DRAIN_S, running=running)
        await self._context.engine.stop()
        try:
            async with asyncio.timeout(_REPORT_S):
                await self._reporter.queue.wait_idle()
        except TimeoutError:
            _log.warning("last reports not written; the next leader writes them")

    async def _read(self, name: str) -> None:
        try:
            await self._reader.handle(name)
        finally:
            self._pruner.wake()

    def _is_read(self, name: str) -> None:
        self._stacks.add(name)
        self._applier.supersede(name)

    async def _apply(self, name: str) -> None:
        try:
            await self._applier.handle(name)
        finally:
            self._pruner.wake()

    async def _preview(self, key: str) -> None:
        await self._previewer.handle(key)
        if await self._context.data.replace_previews(self._context.replica.node):
            self._follow_previews()

    def _follow_previews(self) -> None:
        """Subscribe to the present map of candidates. One that was deleted changes no more."""
        previews = self._context.data.previews
        self._candidates = previews.track()
        self._candidates.take()
        self._unsubscribe.append(previews.on_change(lambda _: self._previews_changed()))

    def _desired_changed(self) -> None:
        for name in self._desired.take():
            self._reads.add(name)

    def _previews_changed(self) -> None:
        for key in self._candidates.take() if self._candidates is not None else ():
            self._previews.add(key)


async def begin(context: Context, guard: Guard, engine: StackEngine, lease: Held) -> Term:
    """Start a term with the present data in Jazz and on the volume."""
    guard.reload()
    return Term(TermContext(context, await open_data(context), guard, engine, lease))
