"""Apply or remove one stack that was read: run the engine in a lane, store the result.

No lane is held for ever. The engine ends each operation at its deadline. An operation that has run for `PATIENCE_S`
ends early if a newer revision was read, because what it waits for may be what the newer revision mends. Objects that
are being deleted are awaited by the watches, outside of the lane: the stack is handled again as soon as they are
gone.

Level-triggered: `handle` may run at any time, for any reason.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client import Counter, Histogram

from reside.common.tracing import step
from reside.model.constants import TEARDOWN_MARKER
from reside.model.errors import NotReady
from reside.model.stacks import DesiredStack
from reside.sentinel.engine import (
    ApplyBlocked,
    ApplyConflict,
    ApplyRejected,
    DeletionPending,
    EngineUnavailable,
    StackSpec,
)
from reside.sentinel.errors import ClusterUnavailable
from reside.sentinel.objects.identity import is_being_deleted
from reside.sentinel.objects.yields import to_apply
from reside.sentinel.store.stacks import StoredStack
from reside.sentinel.term.apply_events import tell_failure
from reside.sentinel.term.metrics import count, phase
from reside.sentinel.term.reporter import BEGUN_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from reside.model.stacks import K8sObject
    from reside.sentinel.term.context import TermContext
    from reside.sentinel.term.metrics import Operation
    from reside.sentinel.term.reader import Reader, Reading
    from reside.sentinel.term.reporter import Reporter

_log = structlog.get_logger(__name__)

PATIENCE_S: Final = 5.0
"""Seconds for which an operation may run although a newer revision was read. Nearly all of them end within two."""
APPLY_SECONDS = Histogram("reside_sentinel_apply_seconds", "Duration of an apply by the engine.")
SUPERSEDED = Counter(
    "reside_sentinel_superseded_operations_total", "Operations that ended early because a newer revision was read."
)


@dataclass
class _Running:
    """An operation of the engine on one stack."""

    revision: str | None
    began: float
    superseded: bool = False


@dataclass(frozen=True)
class _Awaited:
    """Objects that are being deleted, and the revision that is complete without them."""

    revision: str | None
    objects: frozenset[str]


class Applier:
    """Applies and removes stacks.

    Args:
        context: the parts of the term.
        reporter: receives every result.
        reader: has what is to be applied.
        changed: called with a stack's name when objects of it that were being deleted are gone, or when it may adopt
            objects that have left another stack.
    """

    def __init__(
        self, context: TermContext, reporter: Reporter, reader: Reader, changed: Callable[[str], None]
    ) -> None:
        self._context = context
        self._reporter = reporter
        self._reader = reader
        self._changed = changed
        self._running: dict[str, _Running] = {}
        self._interrupts: set[asyncio.Task[None]] = set()
        self._awaited: dict[str, _Awaited] = {}
        self._waiting_for: dict[str, str] = {}
        """Object that is being deleted → the stack that waits for it."""
        self._unlisten = context.guard.cache.listen(self._object_changed)

    async def handle(self, name: str) -> None:
        """Make the live objects of a stack equal to what was read of it.

        Raises:
            ResideError, EngineError, LockError: a retry may help.
            Exception: a bug; it is reported, too.
        """
        reading = self._reader.readings.get(name)
        if reading is None:
            return
        try:
            is_done = await (self._remove(name) if reading.stack is None else self._apply(reading.stack, reading))
        except Exception as error:
            if self._reporter.fail(name, error):
                self._tell(name, reading.stack, error)
            raise
        if is_done:
            if reading.stack is not None:
                self._reporter.succeed(name)
            self._reader.applied(name, reading)

    def supersede(self, name: str) -> None:
        """End a running operation early, if another revision than the one that was read last is being applied."""
        running, reading = self._running.get(name), self._reader.readings.get(name)
        if running is None or running.superseded or reading is None or reading.revision == running.revision:
            return
        running.superseded = True
        task = asyncio.create_task(self._interrupt(name, running), name=f"interrupt {name}")
        self._interrupts.add(task)
        task.add_done_callback(self._interrupts.discard)

    def close(self) -> None:
        """Unsubscribe, and interrupt nothing more."""
        self._unlisten()
        for task in self._interrupts:
            task.cancel()

    async def _apply(self, stack: DesiredStack, reading: Reading) -> bool:
        """Apply a stack; return whether that is done, or goes on when objects are gone."""
        guard = self._context.guard
        stored = guard.store.stacks.get(stack.name)
        if not stack.objects and (stored is None or not (stored.objects or stored.pending or stored.leaving)):
            before = stored or StoredStack(stack.name, stack.owner)
            await guard.store.save_aside(before.after_apply(stack))
            return True
        if self._still_waits(stack.name, stack.revision):
            return True
        self._refuse_teardown()
        with phase("apply", "check"):
            expected = await self._context.check_adoption(stack, reading.objects, trusting=True)
        async with self._locked(stack.name, "apply"):
            objects = stack.keys()
            with (
                guard.repairer.suspended(stack.name, objects) as written,
                self._operation(stack.name, stack.revision, objects) as running,
            ):
                self._context.check_held(stack)
                before = guard.store.stacks.get(stack.name) or StoredStack(stack.name, stack.owner)
                during = before.during_apply(stack)
                moved = self._reader.moves.of(stack.name, stack.owner, during.leaving)
                await guard.store.save_aside(during)
                self._reporter.touch(stack.name, BEGUN_S)
                try:
                    with (
                        phase("apply", "engine"),
                        APPLY_SECONDS.time(),
                        step("apply a stack", stack.traceparent, {"reside.stack": stack.name}),
                    ):
                        await guard.repairer.take_over(reading.objects)
                        manifests = to_apply(reading.objects, guard.cache.get)
                        spec = StackSpec(stack.name, manifests, frozenset(moved), expected)
                        done = await self._context.engine.apply(spec)
                except DeletionPending as pending:
                    self._reporter.clear_fault(stack.name)
                    stored = guard.store.stacks[stack.name].after_apply(stack)
                    await guard.store.save_aside(replace(stored, leaving=pending.objects))
                    self._announce(stack.name, moved)
                    self._await(stack.name, stack.revision, pending)
                    return True
                except EngineUnavailable:
                    if not running.superseded:
                        raise
                    return False
                except (ApplyBlocked, ApplyConflict, ApplyRejected) as error:
                    if error.object in expected:  # it may exist, and not be ours
                        with suppress(ClusterUnavailable):
                            await self._context.check_adoption(stack, reading.objects)
                    raise
                self._reporter.clear_fault(stack.name)
                with phase("apply", "store"):
                    await guard.store.save_aside(guard.store.stacks[stack.name].after_apply(stack))
                written.update(done.versions)
        count(done.changed)
        self._announce(stack.name, moved)
        changed = [f"{change.action} {change.object}" for change in done.changed]
        _log.info("applied", of=stack.name, revision=stack.revision[:12], changes=changed, seconds=done.seconds)
        return True

    async def _remove(self, name: str) -> bool:
        """Remove a stack; return whether that is done."""
        guard = self._context.guard
        if name not in guard.store.stacks:
            return True
        if self._still_waits(name, None):
            return False
        self._refuse_teardown()
        async with self._locked(name, "remove"):
            if not self._is_deleted(name):
                self._changed(name)  # it was declared again, or has another owner, since it was read
                return False
            before = guard.store.stacks[name]
            with guard.repairer.suspended(name), self._operation(name, None, before.held()) as running:
                during = before.during_apply(DesiredStack(name, before.owner, ()))
                moved = self._reader.moves.of(name, before.owner, during.leaving)
                await guard.store.save_aside(during)
                try:
                    with phase("remove", "engine"):
                        done = await self._context.engine.destroy(name, frozenset(moved))
                except DeletionPending as pending:
                    self._await(name, None, pending)
                    return False
                except EngineUnavailable:
                    if not running.superseded:
                        raise
                    return False
                guard.store.remove(name)
        count(done.changed)
        _log.info("removed", of=name)
        self._announce(name, moved)
        guard.vault.keep_only(self._reader.used_values())
        return True

    def _tell(self, name: str, stack: DesiredStack | None, error: Exception) -> None:
        """Tell an error by an event about an object of the stack."""
        found = stack or self._context.guard.store.stacks.get(name)
        if found is not None:
            tell_failure(self._context.guard, name, found.objects, error)

    def _is_deleted(self, name: str) -> bool:
        entry = self._context.entry(name)
        return entry is not None and entry.deleted

    def _announce(self, name: str, moved: dict[str, str]) -> None:
        """Let the stacks that declare objects which have left this one adopt them."""
        for key, other in moved.items():
            _log.info("object moves to another stack", object=key, of=name, to=other)
        for other in set(moved.values()):
            self._changed(other)

    @asynccontextmanager
    async def _locked(self, name: str, operation: Operation) -> AsyncIterator[None]:
        """Hold the lock of a stack while the block is open; check first that the lease is held."""
        async with AsyncExitStack() as held:
            with phase(operation, "wait"):
                await held.enter_async_context(self._context.stack_lock(name))
            await self._context.lease.check()
            yield

    @contextmanager
    def _operation(self, name: str, revision: str | None, objects: Iterable[str]) -> Iterator[_Running]:
        """Note that an operation runs on a stack while the block is open."""
        self._stop_waiting(name)
        running = self._running[name] = _Running(revision, asyncio.get_running_loop().time())
        self.supersede(name)  # what was read while this one waited for its turn
        try:
            with self._reporter.progress.shown(name, revision, objects):
                yield running
        finally:
            del self._running[name]

    async def _interrupt(self, name: str, running: _Running) -> None:
        await asyncio.sleep(running.began + PATIENCE_S - asyncio.get_running_loop().time())
        if self._running.get(name) is running:
            SUPERSEDED.inc()
            _log.info("ending an operation early, because a newer revision was read", of=name)
            await self._context.engine.interrupt(name)

    def _await(self, name: str, revision: str | None, pending: DeletionPending) -> None:
        """Handle the stack again when these objects are gone.

        Raises:
            DeletionPending: the watches don't see that they are being deleted; try again later.
        """
        self._awaited[name] = _Awaited(revision, pending.objects)
        if not self._still_waits(name, revision):
            raise pending  # the watches don't see them: they are gone just now, or have lost our label
        self._waiting_for |= dict.fromkeys(pending.objects, name)
        _log.info("waiting for deletions", of=name, objects=sorted(pending.objects))

    def _still_waits(self, name: str, revision: str | None) -> bool:
        """Return whether a revision is complete but for objects that are still being deleted."""
        awaited = self._awaited.get(name)
        if awaited is None or awaited.revision != revision:
            return False
        return any(_is_leaving(self._context.guard.cache.get(key)) for key in awaited.objects)

    def _stop_waiting(self, name: str) -> None:
        awaited = self._awaited.pop(name, None)
        for key in awaited.objects if awaited else ():
            self._waiting_for.pop(key, None)

    def _object_changed(self, key: str, _before: K8sObject | None, live: K8sObject | None) -> None:
        name = self._waiting_for.get(key)
        if name is not None and not _is_leaving(live):
            self._changed(name)

    def _refuse_teardown(self) -> None:
        """Check that the cluster is not being destroyed.

        Raises:
            NotReady: it is being destroyed.
        """
        if self._context.guard.cache.is_teardown:
            raise NotReady(f"{TEARDOWN_MARKER} exists: the cluster is being destroyed; nothing is applied or deleted")


def _is_leaving(live: K8sObject | None) -> bool:
    return live is not None and is_being_deleted(live)
