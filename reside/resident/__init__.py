"""Pulumi's engine kept resident, for any program on the Automation API.

With ``LocalWorkspaceOptions(pulumi_command=ResidentCommand())``, the API sends each command line to ``reside-engine``
(Go, in ``engine/``) over a unix socket instead of starting the ``pulumi`` binary; what the engine does not serve goes
to the binary by itself. Nothing here knows of ReSide. The idea, what is shared between operations, and the limits
stand in docs/resident-engine.md.
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
