"""Runs Pulumi commands in a resident engine, for any program on the Automation API.

With `LocalWorkspaceOptions(pulumi_command=ResidentCommand())`, the API sends each command to `reside-engine` (in Go, in
`engine/`) over a unix socket instead of starting the `pulumi` binary. Commands that the engine does not serve run on
the binary. This package does not depend on ReSide. docs/resident-engine.md describes the idea, what operations share,
and the limits.

Only `ResidentCommand` and `EngineDied` import Pulumi's SDK, which takes 17 MiB. A program that uses an `Engine` without
the Automation API, as the Sentinel does, does not need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.resident.engine import Call, Engine
from reside.resident.errors import EngineEnded, EngineUnavailable, Unserved
from reside.resident.settings import ResidentSettings

if TYPE_CHECKING:
    from reside.resident.command import EngineDied, ResidentCommand

__all__ = [
    "Call",
    "Engine",
    "EngineDied",
    "EngineEnded",
    "EngineUnavailable",
    "ResidentCommand",
    "ResidentSettings",
    "Unserved",
]


def __getattr__(name: str) -> Any:
    """Import what needs Pulumi's SDK when it is first used."""
    if name not in ("EngineDied", "ResidentCommand"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reside.resident import command  # noqa: PLC0415 - imports pulumi

    return getattr(command, name)
