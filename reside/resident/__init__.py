"""Runs Pulumi commands in a resident engine, for any program on the Automation API.

With `LocalWorkspaceOptions(pulumi_command=ResidentCommand())`, the API sends each command to `reside-engine` (in Go, in
`engine/`) over a unix socket instead of starting the `pulumi` binary. Commands that the engine does not serve run on
the binary. This package does not depend on ReSide. docs/resident-engine.md describes the idea, what operations share,
and the limits.
"""

from reside.resident.command import ResidentCommand
from reside.resident.engine import Call, Engine
from reside.resident.errors import EngineDied, EngineUnavailable, Unserved
from reside.resident.settings import ResidentSettings

__all__ = [
    "Call",
    "Engine",
    "EngineDied",
    "EngineUnavailable",
    "ResidentCommand",
    "ResidentSettings",
    "Unserved",
]
