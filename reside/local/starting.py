"""Start components that do not run and restart unhealthy ones, each as soon as its dependencies are healthy."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from reside.common.polling import wait_until
from reside.local import health
from reside.local.components import Component
from reside.local.events import Event, Phase, Progress
from reside.local.supervise import Supervisor

START_SECONDS = 180.0
"""Seconds to wait until the components are healthy; enough for two slow cores that builds use as well."""

GRACE_SECONDS = 10.0
"""Seconds for which a component that runs already may be unhealthy before it is restarted."""


@dataclass
class Clock:
    """Report steps as events with the time since the command began."""

    progress: Progress
    began: float = field(default_factory=time.monotonic)

    def report(self, component: str, phase: Phase) -> None:
        """Report a step."""
        self.progress(Event(component, phase, time.monotonic() - self.began))


@dataclass
class Starter:
    """Start a local cluster's components.

    Args:
        supervisor: supervisor of the local cluster's processes.
        clock: reports each step.
        healthy: names of the components that are known to be healthy.
    """

    supervisor: Supervisor
    clock: Clock
    healthy: set[str] = field(default_factory=set)

    def start(self, desired: Sequence[Component]) -> None:
        """Start these components and wait until all are healthy.

        Raises:
            ComponentFailedError: one ended, or did not become healthy in time.
        """
        waiting = [component for component in desired if not self._is_unchanged(component)]
        starting: list[Component] = []

        def advance() -> bool:
            for component in [item for item in waiting if self.healthy.issuperset(item.needs)]:
                self._start(component)
                waiting.remove(component)
                starting.append(component)
            for component in [item for item in starting if self._has_started(item)]:
                starting.remove(component)
            return not waiting and not starting

        if not wait_until(advance, START_SECONDS):
            late = [*starting, *waiting][0].name
            raise self.supervisor.failure(late, f"was not healthy after {START_SECONDS:.0f} s")

    def _is_unchanged(self, component: Component) -> bool:
        current = self.supervisor.is_current(component)
        healthy = current and wait_until(lambda: health.is_healthy(component.health), GRACE_SECONDS)
        if healthy:
            self.healthy.add(component.name)
            self.clock.report(component.name, "unchanged")
        return healthy

    def _start(self, component: Component) -> None:
        self.clock.report(component.name, "starting")
        self.supervisor.stop([component.name])
        self.supervisor.start(component)

    def _has_started(self, component: Component) -> bool:
        if health.is_healthy(component.health):
            self.healthy.add(component.name)
            self.clock.report(component.name, "ready")
            return True
        if self.supervisor.running(component.name) is None:
            raise self.supervisor.failure(component.name, "exited while starting")
        return False
