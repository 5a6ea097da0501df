"""Settings of the resident engine, as its client gives them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MIB = 1024 * 1024


@dataclass(frozen=True)
class ResidentSettings:
    """Which engine to use, and how long it lives.

    Attributes:
        engine: Name or path of the ``reside-engine`` binary.
        lifetime: ``user``: all programs of one user share an engine, which ends when idle. ``parent``: the engine
            belongs to this process alone and ends with it.
        folder: Where sockets, logs and notes of held locks stand; None: ``$XDG_RUNTIME_DIR/reside-engine``, else
            ``~/.cache/reside-engine``. Made with mode 0700.
        idle_seconds: After how long without a command an engine of lifetime ``user`` ends.
        max_operations: After how many operations the engine hands over to a successor (pinned engines leak a little
            with each; see docs/resident-engine.md).
        max_rss: Memory of engine and providers, in bytes, pages that they share counted once, at which it hands over:
            low enough for two generations during a handover to stay below 350 MiB.
        max_age_seconds: Age at which it hands over.
        start_seconds: How long an engine may take to come up; it takes half a second.
        fallback: Whether commands go to the stock command line, with a warning, if no engine comes up; otherwise
            :class:`reside.resident.EngineUnavailable` is raised.
    """

    engine: str = "reside-engine"
    lifetime: Literal["user", "parent"] = "user"
    folder: Path | None = None
    idle_seconds: int = 600
    max_operations: int = 500
    max_rss: int = 258 * MIB
    max_age_seconds: int = 24 * 3600
    start_seconds: float = 20.0
    fallback: bool = False

    @property
    def base(self) -> Path:
        """``folder``, or what stands for it."""
        if self.folder is not None:
            return self.folder.absolute()
        runtime = os.environ.get("XDG_RUNTIME_DIR")
        return (Path(runtime) if runtime else Path.home() / ".cache") / "reside-engine"

    def arguments(self) -> list[str]:
        """Flags of ``reside-engine serve`` for these settings."""
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
        ]
