"""The port behind which an engine stands: operations on stacks, with results and events as data.

Nothing else of the Sentinel knows how an operation is run. An adapter keeps these promises: an operation either
returns what it changed or raises one error of errors.py; two operations on one stack never overlap (the caller keeps
one serial lane a stack, and an adapter raises :class:`StackLocked` if it does not); operations on different stacks may
run at the same time; a cancelled operation is ended, not left alone: when the call returns, nothing of it is at work,
and the next one on that stack converges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject, ObjectChange

EventPhase = Literal["started", "done", "failed"]


@dataclass(frozen=True)
class StackSpec:
    """What a stack shall hold: full manifests, Secrets with their values (hence no ``objects`` in its repr)."""

    name: str
    objects: tuple[K8sObject, ...] = field(repr=False)


@dataclass(frozen=True)
class StackEvent:
    """Progress of one object during an operation."""

    object: str
    action: str
    phase: EventPhase


@dataclass(frozen=True)
class ChangeSet:
    """What an operation did, or would do, to each object of a stack, and how long it took in seconds."""

    changes: tuple[ObjectChange, ...]
    seconds: float

    @property
    def changed(self) -> tuple[ObjectChange, ...]:
        """The changes that are some: everything but ``same``."""
        return tuple(change for change in self.changes if change.action != "same")


OnEvent = Callable[[StackEvent], None]
"""Called in the caller's event loop, in order; it must not block."""


class StackEngine(Protocol):
    """Operations on stacks."""

    async def preview(self, stack: StackSpec, on_event: OnEvent | None = None) -> ChangeSet:
        """What :meth:`apply` would do now; changes nothing, and leaves no trace of a stack that does not exist."""
        ...

    async def apply(self, stack: StackSpec, on_event: OnEvent | None = None) -> ChangeSet:
        """Make the cluster hold exactly the stack's objects: create, update, and delete what is no longer in it."""
        ...

    async def destroy(self, name: str) -> ChangeSet:
        """Delete all objects of a stack and forget it; a stack that does not exist is no error."""
        ...

    async def export(self, name: str) -> dict[str, Any]:
        """The stack's state as the engine keeps it, secrets encrypted; empty for a stack that does not exist."""
        ...

    async def stop(self) -> None:
        """Refuse new operations, ask running ones to end gracefully, wait for them."""
        ...
