"""Apply one stack: read the desired stack, check it, resolve secret references, run the engine, store the result.

Level-triggered: `handle` may run at any time, for any reason. A stack whose revision is already applied needs no
operation of the engine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from prometheus_client import Histogram

from reside.common.tracing import step
from reside.model.constants import TEARDOWN_MARKER
from reside.model.errors import NotAllowed, NotReady
from reside.model.stacks import DesiredStack
from reside.sentinel.engine import StackSpec
from reside.sentinel.objects.secrets import all_references
from reside.sentinel.store.stacks import StoredStack
from reside.sentinel.term.moves import Moves
from reside.sentinel.term.secret_values import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.jazz import CoMap
    from reside.model.stacks import K8sObject
    from reside.sentinel.term.context import TermContext
    from reside.sentinel.term.reporter import Reporter

_log = structlog.get_logger(__name__)

APPLY_SECONDS = Histogram("reside_sentinel_apply_seconds", "Duration of an apply by the engine.")


class Applier:
    """Applies and removes stacks.

    Args:
        context: the parts of the term.
        reporter: receives every result.
        changed: called with a stack's name when its map or a secret value that it references changes.
    """

    def __init__(self, context: TermContext, reporter: Reporter, changed: Callable[[str], None]) -> None:
        self._context = context
        self._reporter = reporter
        self._changed = changed
        self._watched: dict[str, dict[str, Callable[[], None]]] = {}
        self._resolved: dict[str, set[tuple[str, str]]] = {}
        """Stack → (owner, map) of the secret values that the vault keeps for it, even before it is applied."""
        self._moves = Moves(context)
        self._accepted: set[str] = set()
        """Stacks whose latest desired stack was read and passed all checks in this term."""

    async def handle(self, name: str) -> None:
        """Make the live objects of a stack equal to its present desired stack.

        Raises:
            InvalidInput: the desired stack must be changed.
            ResideError, EngineError, JazzError, LockError: a retry may help.
            Exception: a bug; it is reported, too.
        """
        try:
            await self._handle(name)
        except Exception as error:
            self._reporter.fail(name, error)
            raise
        finally:
            self._moves.examined(name)

    def unaccepted(self) -> frozenset[str]:
        """Return the stacks that are desired or stored and not accepted, so that objects of theirs may be unknown."""
        known = {*self._context.data.desired.keys(), *self._context.guard.store.stacks}
        return frozenset(known - self._accepted)

    def close(self) -> None:
        """Unsubscribe."""
        for name in list(self._watched):
            self._watch(name, {})

    async def _handle(self, name: str) -> None:
        entry = self._context.entry(name)
        self._accepted.discard(name)
        if entry is not None and entry.deleted:
            await self._remove(name)
            return
        if entry is None:
            if name in self._context.data.desired:
                raise NotAllowed(
                    f"stack {name}: no account that wrote it has a permission to declare objects: grant one"
                )
            return
        source, stack = await self._context.read(name, entry)
        self._watch(name, {source.id: source})
        self._moves.read(name, source)
        self._reporter.set_desired(stack)
        self._context.check(stack)
        self._accepted.add(name)
        objects, values = await resolve(self._context.replica.node, self._context.guard, stack)
        self._resolved[name] = _values_of(stack)
        self._watch(name, {source.id: source, **values})
        await self._apply(stack, objects)
        self._reporter.succeed(name)

    async def _apply(self, stack: DesiredStack, objects: tuple[K8sObject, ...]) -> None:
        guard = self._context.guard
        stored = guard.store.stacks.get(stack.name)
        if stored is not None and stored.applied == stack.revision and stored.settled:
            guard.repairer.update(stack.name)  # a secret's value may have changed
            return
        if not stack.objects and (stored is None or not (stored.objects or stored.pending or stored.leaving)):
            guard.store.save(StoredStack(stack.name, stack.owner).after_apply(stack))
            return
        self._refuse_teardown()
        await self._context.check_adoption(stack, objects)
        async with self._context.stack_lock(stack.name):
            await self._context.lease.check()
            with guard.repairer.suspended(stack.name):
                self._context.check_held(stack)
                before = guard.store.stacks.get(stack.name) or StoredStack(stack.name, stack.owner)
                during = before.during_apply(stack)
                moved = self._moves.of(stack.name, stack.owner, during.leaving)
                guard.store.save(during)
                self._reporter.touch(stack.name)
                with APPLY_SECONDS.time(), step("apply a stack", stack.traceparent, {"reside.stack": stack.name}):
                    done = await self._context.engine.apply(StackSpec(stack.name, objects, frozenset(moved)))
                guard.store.save(guard.store.stacks[stack.name].after_apply(stack))
        self._announce(stack.name, moved)
        changed = [f"{change.action} {change.object}" for change in done.changed]
        _log.info("applied", of=stack.name, revision=stack.revision[:12], changes=changed, seconds=done.seconds)

    async def _remove(self, name: str) -> None:
        guard = self._context.guard
        self._resolved.pop(name, None)
        if name in guard.store.stacks:
            self._refuse_teardown()
            async with self._context.stack_lock(name):
                await self._context.lease.check()
                with guard.repairer.suspended(name):
                    before = guard.store.stacks[name]
                    during = before.during_apply(DesiredStack(name, before.owner, ()))
                    moved = self._moves.of(name, before.owner, during.leaving)
                    guard.store.save(during)
                    await self._context.engine.destroy(name, frozenset(moved))
                    guard.store.remove(name)
            _log.info("removed", of=name)
            self._announce(name, moved)
            kept = [_values_of(stored) for stored in guard.store.stacks.values()]
            guard.vault.keep_only(set().union(*kept, *self._resolved.values()))
        self._watch(name, {})
        self._moves.forget(name)
        self._reporter.remove(name)

    def _announce(self, name: str, moved: dict[str, str]) -> None:
        """Let the stacks that declare objects which have left this one adopt them."""
        for key, other in moved.items():
            _log.info("object moves to another stack", object=key, of=name, to=other)
        for other in set(moved.values()):
            self._changed(other)

    def _refuse_teardown(self) -> None:
        """Check that the cluster is not being destroyed.

        Raises:
            NotReady: it is being destroyed.
        """
        if self._context.guard.cache.is_teardown:
            raise NotReady(f"{TEARDOWN_MARKER} exists: the cluster is being destroyed; nothing is applied or deleted")

    def _watch(self, name: str, values: dict[str, CoMap]) -> None:
        """Subscribe to changes of exactly these maps."""
        present = self._watched.pop(name, {})
        for co_id in present.keys() - values.keys():
            present[co_id]()
        kept = {co_id: present[co_id] for co_id in present.keys() & values.keys()}
        added = {
            co_id: value.on_change(lambda _: self._changed(name))
            for co_id, value in values.items()
            if co_id not in kept
        }
        if kept or added:
            self._watched[name] = kept | added


def _values_of(stack: DesiredStack | StoredStack) -> set[tuple[str, str]]:
    """Return owner and map of each secret value that a stack references."""
    return {(stack.owner, reference.target) for reference in all_references(stack.objects)}
