"""Read one desired stack: its entry, its map, its secret values; check it, and hand it over to be applied.

Reading waits for Jazz. So it happens outside of the lanes in which the engine works: entries that can't be read,
however many, delay no apply. A stack that is applied already is not handed over at all.

Level-triggered: `handle` may run at any time, for any reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reside.model.errors import NotAllowed
from reside.sentinel.objects.secrets import all_references
from reside.sentinel.term.moves import Moves
from reside.sentinel.term.secret_values import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.jazz import CoMap
    from reside.model.stacks import DesiredStack, K8sObject
    from reside.sentinel.store.stacks import StoredStack
    from reside.sentinel.term.context import TermContext
    from reside.sentinel.term.reporter import Reporter


@dataclass(frozen=True)
class Reading:
    """What is desired of a stack, as it was read last.

    Attributes:
        stack: the desired stack, which was checked; None: the stack is to be removed.
        objects: its objects, with secret values.
    """

    stack: DesiredStack | None
    objects: tuple[K8sObject, ...] = field(default=(), repr=False)

    @property
    def revision(self) -> str | None:
        """Revision of the stack; None if it is to be removed."""
        return self.stack.revision if self.stack else None


class Reader:
    """Reads desired stacks during one term.

    Args:
        context: the parts of the term.
        reporter: receives every stack and every fault.
        changed: called with a stack's name when its map or a secret value that it references changes.
        ready: called with a stack's name when there is something to apply or to remove.
    """

    def __init__(
        self,
        context: TermContext,
        reporter: Reporter,
        changed: Callable[[str], None],
        ready: Callable[[str], None],
    ) -> None:
        self._context = context
        self._reporter = reporter
        self._changed = changed
        self._ready = ready
        self._watched: dict[str, dict[str, Callable[[], None]]] = {}
        self._resolved: dict[str, set[tuple[str, str]]] = {}
        """Stack → (owner, map) of the secret values that the vault keeps for it, even before it is applied."""
        self._stored: dict[str, tuple[StoredStack, set[tuple[str, str]]]] = {}
        """Stack → as it was stored when its secret values were looked up last, and these."""
        self.readings: dict[str, Reading] = {}
        """What is to be applied, by stack."""
        self.moves = Moves(context)
        self._accepted: set[str] = set()
        """Stacks whose latest desired stack was read and passed all checks in this term."""

    async def handle(self, name: str) -> None:
        """Read a stack and hand it over.

        Raises:
            InvalidInput: the desired stack must be changed.
            ResideError, JazzError: a retry may help.
            Exception: a bug; it is reported, too.
        """
        try:
            reading = await self._read(name)
        except Exception as error:
            self.readings.pop(name, None)
            self._reporter.fail(name, error)
            raise
        finally:
            self.moves.examined(name)
        if reading is not None:
            self.readings[name] = reading
            self._ready(name)

    def unaccepted(self) -> frozenset[str]:
        """Return the stacks that are desired or stored and not accepted, so that objects of theirs may be unknown."""
        known = {*self._context.data.desired.keys(), *self._context.guard.store.stacks}
        return frozenset(known - self._accepted)

    def applied(self, name: str, reading: Reading) -> None:
        """Note that a reading was carried out."""
        if self.readings.get(name) is reading:
            del self.readings[name]
        if reading.stack is None:
            self._forget(name)

    def reassign(self, before: StoredStack, after: StoredStack) -> None:
        """Forget what was read of a stack that gets another owner, and keep the secret values of both in the vault."""
        self.readings.pop(before.name, None)
        self._resolved[before.name] = _values_of(before) | _values_of(after)

    def read_again(self, name: str) -> None:
        """Queue a stack."""
        self._changed(name)

    def used_values(self) -> set[tuple[str, str]]:
        """Return owner and map of every secret value that a stack references, stored or just being applied."""
        stacks = self._context.guard.store.stacks
        self._stored = {name: found for name, found in self._stored.items() if name in stacks}
        for name, stored in stacks.items():
            known = self._stored.get(name)
            if known is None or known[0] is not stored:
                self._stored[name] = (stored, _values_of(stored))
        return set().union(*(values for _, values in self._stored.values()), *self._resolved.values())

    def close(self) -> None:
        """Unsubscribe."""
        for name in list(self._watched):
            self._watch(name, {})

    async def _read(self, name: str) -> Reading | None:
        """Return what there is to do; None: nothing."""
        entry, store = self._context.entry(name), self._context.guard.store
        self._accepted.discard(name)
        if entry is not None and entry.deleted:
            self._resolved.pop(name, None)
            if name in store.stacks:
                return Reading(None)
            self.readings.pop(name, None)
            self._forget(name)
            return None
        if entry is None:
            if name in self._context.data.desired:
                raise NotAllowed(self._undeclared(name))
            return None
        source, stack = await self._context.read(name, entry)
        self._watch(name, {source.id: source})
        self.moves.read(name, source)
        found = self._context.review(stack)
        self._reporter.set_desired(stack, tuple(str(each) for each in found if each.level == "advisory"))
        self._context.check(stack, found)
        self._accepted.add(name)
        objects, values = await resolve(self._context.replica.node, self._context.guard, stack)
        self._resolved[name] = _values_of(stack)
        self._watch(name, {source.id: source, **values})
        stored = store.stacks.get(name)
        if stored is not None and stored.applied == stack.revision and stored.settled:
            self.readings.pop(name, None)
            self._context.guard.repairer.update(name)  # a secret's value may have changed
            self._reporter.succeed(name)
            return None
        return Reading(stack, objects)

    def _undeclared(self, name: str) -> str:
        """Return why no edit of an entry is effective."""
        owner = self._context.owner(name)
        if owner is None:
            return f"stack {name}: no account that wrote it has a permission to declare objects: grant one"
        return f"stack {name} belongs to {owner}, which has not declared it: its objects stay as they are until it does"

    def _forget(self, name: str) -> None:
        if self._context.data.owner(name) is not None:
            self._context.data.owners.delete(name)
        self._watch(name, {})
        self.moves.forget(name)
        self._reporter.remove(name)

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
