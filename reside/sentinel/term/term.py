"""One term of the leading Sentinel: its queues, and the subscriptions that add keys to them."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

import structlog

from reside.common.transience import is_transient
from reside.common.workqueue import WorkQueue
from reside.model import sentinel_data as names
from reside.model.constants import PLATFORM_STACK
from reside.replica.background import in_background
from reside.sentinel.backoff import APPLY_BACKOFF, ATTEMPTS
from reside.sentinel.contract import access
from reside.sentinel.contract.data import open_data
from reside.sentinel.errors import judge
from reside.sentinel.term.applier import Applier
from reside.sentinel.term.context import LaneCounts, TermContext
from reside.sentinel.term.metrics import shown
from reside.sentinel.term.operator_requests import OperatorRequests
from reside.sentinel.term.pod_logs import PodLogs
from reside.sentinel.term.previews import Previewer
from reside.sentinel.term.prune import Pruner
from reside.sentinel.term.reader import Reader
from reside.sentinel.term.reassigning import Reassigner
from reside.sentinel.term.reporter import Reporter
from reside.sentinel.term.state_requests import StateRequests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from reside.jazz import Tracker
    from reside.locks import Held
    from reside.policy.settings import Policy
    from reside.replica import Context
    from reside.sentinel.engine import StackEngine
    from reside.sentinel.guard.guard import Guard

_log = structlog.get_logger(__name__)

_READERS: Final = 1000
"""Maximum number of stacks, and of candidates, that are read in parallel: as many loads as a Jazz node has in flight.
Nearly all of them wait; so many entries that can't be read delay no other."""
_EXPIRY_PAUSE_S: Final = 3600.0
"""Seconds between two looks for candidates that have expired."""
_DRAIN_S: Final = 10.0
"""Deadline in seconds for running operations to finish before the engine is stopped."""
_REPORT_S: Final = 3.0
"""Deadline in seconds for the last reports to be written."""


class Term:
    """The queues that run while this Sentinel leads."""

    def __init__(self, context: TermContext) -> None:
        self._context = context
        self._reporter = Reporter(context)
        self._reads = WorkQueue(
            "read",
            self._read,
            workers=_READERS,
            backoff=APPLY_BACKOFF,
            judge=judge,
            urgent=_is_urgent,
            group=context.declarer,
        )
        self._stacks = WorkQueue(
            "stack",
            self._apply,
            workers=context.lanes.stacks,
            backoff=APPLY_BACKOFF,
            judge=judge,
            urgent=_is_urgent,
            group=context.declarer,
            attempts=ATTEMPTS,
        )
        self._reader = Reader(context, self._reporter, self._reads.add, self._is_read)
        self._applier = Applier(context, self._reporter, self._reader, self._reads.add)
        self._previews = WorkQueue(
            "preview", self._preview, workers=_READERS, backoff=APPLY_BACKOFF, judge=judge, group=self._previewed_by
        )
        self._readers = WorkQueue("readers", self._renew, workers=1, backoff=APPLY_BACKOFF, judge=judge)
        self._previewer = Previewer(context, context.lanes.previews, self._previews.add)
        self._pruner = Pruner(context, (self._reads, self._stacks), self._reader, self._reporter)
        states = StateRequests(context, self._reads.add)
        self._requests = OperatorRequests(
            context,
            {
                names.REASSIGN_STACKS: Reassigner(context, self._reader).handle,
                names.EXPORT_STATE: states.export,
                names.IMPORT_STATE: states.replace,
                names.PRUNE_STATES: states.prune,
                names.MIGRATE_STATES: states.migrate,
                names.SHOW_LOGS: PodLogs(context.guard.api).show,
            },
        )
        self._desired = context.data.desired.track()
        self._candidates: Tracker | None = None
        self._unsubscribe: list[Callable[[], None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Handle stacks and candidates while the block is open; cancel what still runs at its end.

        Raises:
            NotReady: the volume can't be written now; a retry may help.
        """
        try:
            await self._pruner.begin()
            self._desired.take()
            self._examine_all()
            self._unsubscribe.append(self._context.data.desired.on_change(lambda _: self._desired_changed()))
            self._follow_previews()
            availability = self._context.guard.repairer.availability
            self._unsubscribe += [availability.listen(queue.resume) for queue in (self._stacks, self._previews)]
            for account in access.readers(self._context.replica, self._context.data):
                self._readers.add(account)
            with shown(self._reads, self._stacks, self._previews, self._reporter.queue):
                async with in_background(
                    reads=self._reads.run,
                    stacks=self._stacks.run,
                    previews=self._previews.run,
                    reports=self._reporter.queue.run,
                    renewal=self._reporter.renew,
                    readers=self._readers.run,
                    prune=self._pruner.run,
                    requests=self._requests.queue.run,
                    expiry=self._expire,
                ):
                    yield
        finally:
            for unsubscribe in self._unsubscribe:
                unsubscribe()
            self._requests.close()
            self._pruner.close()
            self._previewer.close()
            self._reporter.close()
            self._applier.close()
            self._reader.close()

    def examine(self, account: str, after: float = 0.0) -> None:
        """Queue the stacks of an account and all candidates, in `after` seconds, because permissions have changed.

        A stack that was never accepted has no owner yet, so it may be the account's.
        """
        for name in self._names():
            if self._context.owner(name) in (None, account):
                self._reads.add(name, after)
        self._examine_candidates(after)
        self._requests.examine(after)
        self._pruner.wake(after)  # a confirmation may count now

    async def finish(self) -> None:
        """Start nothing more, let running operations finish, and write their reports."""
        try:
            async with asyncio.timeout(_DRAIN_S):
                queues = (self._reads, self._stacks, self._previews, self._requests.queue)
                await asyncio.gather(*(queue.drain() for queue in queues))
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
            with self._doubted():
                await self._applier.handle(name)
        finally:
            self._pruner.wake()

    async def _renew(self, account: str) -> None:
        await access.renew(self._context.replica, self._context.data, account)

    async def _preview(self, key: str) -> None:
        with self._doubted():
            await self._previewer.handle(key)
        if await self._context.data.replace_previews(self._context.replica.node):
            self._follow_previews()

    def _previewed_by(self, key: str) -> str:
        edit = self._context.data.previews.edit(key)
        return edit.by if edit else ""

    @contextmanager
    def _doubted(self) -> Iterator[None]:
        """Let a transient error in the block be a reason to look whether the Kubernetes API is away."""
        try:
            yield
        except Exception as error:
            if is_transient(error):
                self._context.guard.repairer.availability.doubt()
            raise

    async def _expire(self) -> None:
        """Examine all candidates from time to time, because some may have expired."""
        while True:
            await asyncio.sleep(_EXPIRY_PAUSE_S)
            self._examine_candidates()

    def _examine_all(self) -> None:
        for name in self._names():
            self._reads.add(name)
        self._examine_candidates()

    def _examine_candidates(self, after: float = 0.0) -> None:
        for key in self._context.data.previews.keys() | self._context.data.results.keys():
            self._previews.add(key, after)

    def _names(self) -> set[str]:
        """Return the names of all stacks that are desired, stored or reported."""
        data, stored = self._context.data, self._context.guard.store.stacks
        return {*data.desired.keys(), *stored, *self._reporter.known(), *data.reports.keys()}

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


async def begin(
    context: Context, guard: Guard, engine: StackEngine, lease: Held, *, policy: Policy, lanes: LaneCounts
) -> Term:
    """Start a term with the present data in Jazz and on the volume."""
    await guard.reload()
    return Term(TermContext(context, await open_data(context), guard, engine, lease, policy, lanes))


def _is_urgent(stack: str) -> bool:
    """Return whether a stack has what all others need: Jazz and etcd."""
    return stack == PLATFORM_STACK
