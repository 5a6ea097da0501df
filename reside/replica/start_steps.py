"""The steps of a replica's start: how long each takes, and the deadline after which it fails."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from prometheus_client import Gauge

from reside.model.errors import NotReady

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

START_TIMEOUT_S: Final = 300.0
"""Seconds for which a step waits for the sync server, etcd or the replica's own code; then the process fails, and
Kubernetes restarts it."""
START_SECONDS = Gauge(
    "reside_start_step_seconds",
    "Duration of each step of the last start; the log entry `started` has them, too.",
    ["replica", "step"],
)


class StartSteps:
    """The steps of one start.

    Args:
        replica: name of the instance.
        timeout_s: seconds that each step may take.

    Attributes:
        seconds: the steps that are complete, in order, with their durations.
    """

    def __init__(self, replica: str, timeout_s: float = START_TIMEOUT_S) -> None:
        self.seconds: dict[str, float] = {}
        self._replica = replica
        self._timeout_s = timeout_s

    @asynccontextmanager
    async def step(self, name: str) -> AsyncIterator[None]:
        """Run the block as one step.

        Raises:
            NotReady: it was not complete in time; the message names it.
        """
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            done = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in self.seconds.items()) or "none"
            raise NotReady(
                f"{self._replica} can't start: {name} was not complete after {self._timeout_s:g} s (done: {done})"
            ) from error
        self.seconds[name] = round(time.monotonic() - began, 3)
        START_SECONDS.labels(self._replica, name).set(self.seconds[name])
