"""The errors of the engine package.

    EngineError
    ├── EngineUnavailable   transient: the cluster or the engine cannot be used now; retry later
    │   ├── EngineKilled    the engine ended during the operation; the next operation repairs the stack
    │   ├── EngineTimeout   the operation was ended at its deadline; the next operation repairs the stack
    │   └── ProviderEnded   the process of the provider ended, perhaps because of another operation
    ├── DeletionPending     transient: all is done, but for objects that are still being deleted
    ├── ApplyConflict       another field manager owns a field of the object; an operator must decide
    ├── ApplyBlocked        the API server refused the object for another reason: a quota, a webhook, a permission
    ├── ApplyEndsProvider   the process of the provider ended, and no other operation used it
    ├── ApplyRejected       the API server refused the object; the desired stack must change
    ├── StackLocked         transient: two operations on one stack at the same time; the caller must serialize them
    └── EngineBroken        wrong passphrase or unreadable state; an operator must repair it

Invariant: a message is short and contains no secret value (see `reside.sentinel.objects.masking`), so it may be logged
and stored in Jazz.
"""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """A failure of an operation.

    Attributes:
        object: `Kind/name` of the object that caused the failure, if it was one object.
        message: the text without the object.
        transient: whether the same operation may succeed later without a change.
    """

    transient: ClassVar[bool] = False
    needs_change: ClassVar[bool] = False
    """Whether only a change of the stack can help, so that a retry is of no use."""

    def __init__(self, message: str, object: str | None = None) -> None:  # noqa: A002 - the package's term
        super().__init__(message if object is None else f"{object}: {message}")
        self.object = object
        self.message = message


class EngineUnavailable(EngineError):  # noqa: N818 - named after what is wrong
    """The cluster cannot be reached or the engine cannot run now; retry later."""

    transient = True


class EngineKilled(EngineUnavailable):
    """The engine ended during an operation; the next operation finds out what was done, and repairs the stack."""


class EngineTimeout(EngineUnavailable):
    """The operation was ended because it took longer than its deadline."""


class ProviderEnded(EngineUnavailable):
    """The process of Pulumi's provider ended during the operation, perhaps because of another operation."""


class DeletionPending(EngineError):  # noqa: N818 - see EngineUnavailable
    """The operation deleted objects that still exist, because finalizers or their pods delay the end of a deletion.

    Everything else is done. The next operation finds the objects deleted, or waits for them again.

    Attributes:
        objects: `Kind/name` of these objects.
    """

    transient = True

    def __init__(self, objects: frozenset[str]) -> None:
        super().__init__(f"still being deleted: {', '.join(sorted(objects))}; look at their finalizers")
        self.objects = objects


class ApplyRejected(EngineError):  # noqa: N818 - see EngineUnavailable
    """The API server refused an object; a retry without a change fails again."""

    needs_change = True


class ApplyBlocked(EngineError):  # noqa: N818 - see EngineUnavailable
    """The API server refused an object for a reason outside of the stack, which others can remove."""


class ApplyEndsProvider(EngineError):  # noqa: N818 - see EngineUnavailable
    """The process of Pulumi's provider ended during the operation, although no other operation used it."""


class ApplyConflict(EngineError):  # noqa: N818 - see EngineUnavailable
    """Another field manager owns fields that the object sets.

    Attributes:
        manager: the name of the other field manager.
    """

    def __init__(self, message: str, object: str | None = None, manager: str = "unknown") -> None:  # noqa: A002 - as above
        super().__init__(message, object)
        self.manager = manager


class StackLocked(EngineError):  # noqa: N818 - see EngineUnavailable
    """Another operation runs on the stack now."""

    transient = True


class EngineBroken(EngineError):  # noqa: N818 - see EngineUnavailable
    """The engine cannot work until an operator repairs its settings or its state."""
