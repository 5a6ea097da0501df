"""The interface through which the Sentinel runs operations on stacks, with results as data.

An implementation guarantees:

- An operation returns what it changed, or raises one error of `errors`.
- Two operations on one stack never overlap. The caller serializes them; an operation that overlaps raises
  `StackLocked`.
- Operations on different stacks may run at the same time.
- A cancelled operation is ended. When the call returns, nothing of it runs, and the next operation on the stack
  converges.
- An operation ends at a deadline. It does not wait for the end of deletions: `DeletionPending` names the objects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.model.previews import ObjectChange
    from reside.model.stacks import K8sObject


@dataclass(frozen=True)
class StackSpec:
    """The desired content of a stack.

    Attributes:
        name: the name of the stack.
        objects: complete objects; Secrets have their values, so the repr does not show them.
        expected: `Kind/name` of an object that is not in the stack yet → metadata that the create must contain, so that
            it fails if another program was faster (see `adoption`).
        released: `Kind/name` of objects that the stack gives to another one: they are forgotten, and not deleted.
    """

    name: str
    objects: tuple[K8sObject, ...] = field(repr=False)
    released: frozenset[str] = frozenset()
    expected: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeSet:
    """The result of an operation.

    Attributes:
        changes: what the operation did, or would do, to each object.
        seconds: how long the operation took.
        versions: resource versions of the objects that the operation created or updated, by `Kind/name`.
    """

    changes: tuple[ObjectChange, ...]
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> tuple[ObjectChange, ...]:
        """The changes other than `same`."""
        return tuple(change for change in self.changes if change.action != "same")


class StackEngine(Protocol):
    """Operations on stacks."""

    async def start(self) -> None:
        """Start what the first operation needs, which then takes less time. Nothing is changed.

        Operations may begin meanwhile. An error says that the first operation would fail, too.
        """
        ...

    async def preview(self, stack: StackSpec) -> ChangeSet:
        """Return what `apply` would do now; nothing is changed, and a stack that does not exist is not created."""
        ...

    async def apply(self, stack: StackSpec) -> ChangeSet:
        """Make the cluster contain exactly the objects of the stack; objects no longer in the stack are deleted.

        Objects that the stack retains or releases are not deleted. A change that Kubernetes does not allow is an error,
        unless the object may be replaced (`resources.may_be_replaced`).
        """
        ...

    async def destroy(self, name: str, released: frozenset[str] = frozenset()) -> ChangeSet:
        """Delete all objects of a stack and the stack itself; a stack that does not exist is not an error.

        Args:
            name: the name of the stack.
            released: see `StackSpec`.
        """
        ...

    async def export_state(self, name: str) -> bytes | None:
        """Return the state of a stack as `pulumi stack export` writes it; None if it has none.

        Secrets in it stay encrypted.
        """
        ...

    async def import_state(self, name: str, state: bytes) -> None:
        """Replace the state of a stack by an exported one; the next operation begins with a refresh.

        The state before it stays in the backup file.
        """
        ...

    async def stacks(self) -> frozenset[str]:
        """Return the names of the stacks that have files."""
        ...

    async def misplaced(self) -> Mapping[str, str]:
        """Return the stacks whose states are in another backend than the one of the settings → that backend."""
        ...

    async def move_state(self, name: str, *, abandon: bool = False) -> None:
        """Move the state of a stack to the backend of the settings, if it is elsewhere.

        Every other operation on the stack begins with that, too. A move that was interrupted is completed.

        Args:
            name: the name of the stack.
            abandon: give the state up where it is now, because that backend can't be reached any more; the next apply
                adopts the live objects.
        """
        ...

    async def forget(self, name: str) -> None:
        """Remove the files of a stack; its objects stay."""
        ...

    async def interrupt(self, name: str) -> None:
        """End the running operation on a stack early; it raises `EngineUnavailable`, unless it was just complete."""
        ...

    async def stop(self) -> None:
        """Refuse new operations, ask running ones to end gracefully, and wait until they have ended."""
        ...
