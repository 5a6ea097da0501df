"""Runs operations on whole stacks of Kubernetes objects, behind the interface in `port`.

There are four layers. The port (`port`, `engine`) is what the Sentinel uses. An operation (`operation`,
`stack_operations`) is an object that runs, stops and can be killed. A command runner (`runner`) runs the commands of
an operation. Below it is a process: the resident engine (`reside.resident`) or the command line.

Importing this package does not import pulumi; the first operation does.
"""

from reside.sentinel.engine.adoption import ForeignObject, check_adoption
from reside.sentinel.engine.engine import PulumiEngine
from reside.sentinel.engine.errors import (
    ApplyBlocked,
    ApplyConflict,
    ApplyRejected,
    DeletionPending,
    EngineBroken,
    EngineError,
    EngineKilled,
    EngineTimeout,
    EngineUnavailable,
    StackLocked,
)
from reside.sentinel.engine.port import ChangeSet, StackEngine, StackSpec
from reside.sentinel.engine.settings import EngineSettings

__all__ = [
    "ApplyBlocked",
    "ApplyConflict",
    "ApplyRejected",
    "ChangeSet",
    "DeletionPending",
    "EngineBroken",
    "EngineError",
    "EngineKilled",
    "EngineSettings",
    "EngineTimeout",
    "EngineUnavailable",
    "ForeignObject",
    "PulumiEngine",
    "StackEngine",
    "StackLocked",
    "StackSpec",
    "check_adoption",
]
