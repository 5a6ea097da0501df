"""Events of the start and stop of a local cluster, and statuses of its components, as data to display."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["running", "unhealthy", "stopped"]
Phase = Literal["starting", "ready", "unchanged", "stopping", "stopped"]


@dataclass(frozen=True)
class Event:
    """A change of one component or step.

    Args:
        component: name of a component, or of a step such as `certificates`, `network`, `node`, `dns`.
        phase: what happened to it; `unchanged` means that it was ready and current already.
        seconds: seconds since the command began.
    """

    component: str
    phase: Phase
    seconds: float


Progress = Callable[[Event], None]
"""Callback for every event, called in the thread of the caller."""


def silent(event: Event) -> None:
    """Ignore an event."""
    del event


@dataclass(frozen=True)
class ComponentStatus:
    """The status of one component.

    Args:
        name: name of the component.
        state: `running` is healthy, `unhealthy` runs but fails its health check, `stopped` does not run.
        pid: process id, if it runs.
        log: path of the file that contains its output.
    """

    name: str
    state: State
    pid: int | None
    log: str
