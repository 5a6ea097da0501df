"""The engine room: applies whole stacks of Kubernetes objects, behind one small port.

Importing this package does not import pulumi; that happens with the first operation.
"""

from reside.sentinel.engine.adoption import ForeignObject, check_adoption
from reside.sentinel.engine.engine import PulumiEngine
from reside.sentinel.engine.errors import (
    ApplyConflict,
    ApplyRejected,
    EngineBroken,
    EngineError,
    EngineKilled,
    EngineUnavailable,
    StackLocked,
)
from reside.sentinel.engine.port import ChangeSet, OnEvent, StackEngine, StackEvent, StackSpec
from reside.sentinel.engine.settings import EngineSettings

__all__ = [
    "ApplyConflict",
    "ApplyRejected",
    "ChangeSet",
    "EngineBroken",
    "EngineError",
    "EngineKilled",
    "EngineSettings",
    "EngineUnavailable",
    "ForeignObject",
    "OnEvent",
    "PulumiEngine",
    "StackEngine",
    "StackEvent",
    "StackLocked",
    "StackSpec",
    "check_adoption",
]
