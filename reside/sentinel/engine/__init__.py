"""Runs operations on whole stacks of Kubernetes objects, behind the interface in `port`.

There are four layers. The port (`port`, `engine`) is what the Sentinel uses. An operation (`operation`,
`stack_operations`) is an object that runs, stops and can be killed. A command runner (`runner`) runs the commands of
an operation. Below it is a process: the resident engine (`reside.resident`) or the command line.

Pulumi is imported only if the command line runs a program: it takes 17 MiB.
"""

from reside.sentinel.engine.adoption import ForeignObject, check_adoption
from reside.sentinel.engine.engine import PulumiEngine
from reside.sentinel.engine.errors import (
    ApplyBlocked,
    ApplyConflict,
    ApplyEndsProvider,
    ApplyRejected,
    DeletionPending,
    EngineBroken,
    EngineError,
    EngineKilled,
    EngineTimeout,
    EngineUnavailable,
    ProviderEnded,
    StackLocked,
)
from reside.sentinel.engine.imported_state import count_objects, objects_of_state
from reside.sentinel.engine.port import ChangeSet, StackEngine, StackSpec
from reside.sentinel.engine.settings import EngineSettings

__all__ = [
    "ApplyBlocked",
    "ApplyConflict",
    "ApplyEndsProvider",
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
    "ProviderEnded",
    "PulumiEngine",
    "StackEngine",
    "StackLocked",
    "StackSpec",
    "check_adoption",
    "count_objects",
    "objects_of_state",
]
