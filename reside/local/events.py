"""What happens while a cluster comes up or goes down, as data for whoever shows it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["running", "unhealthy", "stopped"]
Phase = Literal["starting", "ready", "unchanged", "stopping", "stopped"]


@dataclass(frozen=True)
class Event:
    """One step of one part of the cluster.

    Args:
        component: A process, or a step such as `certificates`, `network`, `node`, `dns`.
        phase: What happened to it; `unchanged` means that it was fine already.
        seconds: Since the command began.
    """

    component: str
    phase: Phase
    seconds: float


Progress = Callable[[Event], None]
"""Called with every event, in the caller's thread."""


def silent(event: Event) -> None:
    """Show nothing."""
    del event


@dataclass(frozen=True)
class ComponentStatus:
    """How one component is.

    Args:
        name: Its name.
        state: `running` is healthy, `unhealthy` runs without answering its health check, `stopped` does not run.
        pid: Its process, if it runs.
        log: Where its output is.
    """

    name: str
    state: State
    pid: int | None
    log: str
