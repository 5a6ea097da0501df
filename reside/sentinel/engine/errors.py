"""What can go wrong in the engine, as a tree.

    EngineError
    ├── EngineUnavailable   transient: the cluster or the command line can't be used now; come back later
    │   └── EngineKilled    the engine ended in the middle; the next operation repairs the state and converges
    ├── ApplyConflict       another field manager holds a field of the object: somebody must decide
    ├── ApplyRejected       the API server refused the object: the wish must change
    ├── StackLocked         transient: two operations on one stack at once; the caller must run one at a time
    └── EngineBroken        wrong passphrase, unreadable state: an operator must look

Invariant: a message is short and holds no secret value (see masking.py), so that it may be logged and stored in Jazz.
"""

from __future__ import annotations

from typing import ClassVar


class EngineError(Exception):
    """Any failure of an engine operation; ``object`` is ``Kind/name`` where one object is to blame."""

    transient: ClassVar[bool] = False

    def __init__(self, message: str, object: str | None = None) -> None:  # noqa: A002 - the word of the whole package
        super().__init__(message if object is None else f"{object}: {message}")
        self.object = object
        self.message = message


class EngineUnavailable(EngineError):  # noqa: N818 - named after what is wrong
    """The cluster cannot be reached or the engine cannot run now; trying again later is right."""

    transient = True


class EngineKilled(EngineUnavailable):
    """The engine ended in the middle of an operation; what it had done is found out by the next one."""


class ApplyRejected(EngineError):  # noqa: N818 - see EngineUnavailable
    """The API server refused an object; trying again without a change is useless."""


class ApplyConflict(EngineError):  # noqa: N818 - see EngineUnavailable
    """Another field manager owns fields that the object sets; ``manager`` names it."""

    def __init__(self, message: str, object: str | None = None, manager: str = "unknown") -> None:  # noqa: A002 - as above
        super().__init__(message, object)
        self.manager = manager


class StackLocked(EngineError):  # noqa: N818 - see EngineUnavailable
    """The stack is in use by another operation at this moment."""

    transient = True


class EngineBroken(EngineError):  # noqa: N818 - see EngineUnavailable
    """The engine cannot work until an operator has mended its settings or its state."""
