"""Settings of the resident engine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from reside.resident.session_variables import SESSION_VARIABLES

MIB = 1024 * 1024


@dataclass(frozen=True)
class ResidentSettings:
    """Which engine to use, when it ends, and how its client behaves.

    Attributes:
        engine: the name or path of the `reside-engine` binary.
        lifetime: `user`: all programs of one user share an engine, which ends when it is idle. `parent`: the engine
            belongs to this process alone and ends with it.
        folder: the folder of sockets, logs and notes of held locks; None: `$XDG_RUNTIME_DIR/reside-engine`, or else
            `~/.cache/reside-engine`. Created with mode 0700.
        idle_seconds: the time without a command after which an engine of lifetime `user` ends.
        max_operations: the number of operations after which the engine hands over to a successor, because the pinned
            version leaks a little memory with each (see docs/resident-engine.md).
        max_rss: the memory of engine and providers in bytes, with shared pages counted once, at which the engine hands
            over. Two generations together stay below 350 MiB during a handover.
        max_age_seconds: the age at which the engine hands over.
        max_drain_seconds: how long an engine that has handed over may take to complete its commands. Then it interrupts
            them, as a terminal does, terminates them ten seconds later, and ends. Longer than any operation takes.
        start_seconds: how long an engine may take to start; it usually takes half a second.
        session_variables: the environment variables that an engine does not get, so that all terminals of a user share
            one. Take a name away if a provider of yours reads it; add one that differs between your terminals or jobs
            and cannot change a result.
        fallback: whether the stock command line runs commands, with a warning, if the engine cannot be started;
            otherwise `EngineUnavailable` is raised.
        filter_debug_messages: whether to patch Pulumi's SDK in this process so that inline programs do not send debug
            messages that the engine would drop. On by default, because sending them takes a fifth of the time of a
            small operation. Turn it off if another library patches `pulumi.automation`.
        separate_channels: whether to patch Pulumi's SDK in this process so that its gRPC channels share no connection.
            On by default, because an operation can fail if its engine gets a port that an earlier engine had. Turn it
            off if another library needs the channel options of the SDK unchanged.
    """

    engine: str = "reside-engine"
    lifetime: Literal["user", "parent"] = "user"
    folder: Path | None = None
    idle_seconds: int = 600
    max_operations: int = 500
    max_rss: int = 258 * MIB
    max_age_seconds: int = 24 * 3600
    max_drain_seconds: int = 6 * 3600
    start_seconds: float = 20.0
    session_variables: frozenset[str] = SESSION_VARIABLES
    fallback: bool = False
    filter_debug_messages: bool = True
    separate_channels: bool = True

    @property
    def base(self) -> Path:
        """The folder, or its default."""
        if self.folder is not None:
            return self.folder.absolute()
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        return (Path(runtime) if runtime else Path.home() / ".cache") / "reside-engine"

    def arguments(self) -> list[str]:
        """Return the flags of `reside-engine serve` for these settings."""
        return [
            "--lifetime",
            self.lifetime,
            "--idle",
            f"{self.idle_seconds}s",
            "--max-operations",
            str(self.max_operations),
            "--max-rss",
            str(self.max_rss),
            "--max-age",
            f"{self.max_age_seconds}s",
            "--max-drain",
            f"{self.max_drain_seconds}s",
        ]
