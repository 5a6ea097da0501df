"""How commands are run, whatever runs them: the seam between operations and the two adapters.

An operation is a few commands, one after the other, on a thread of its own. Others may tell it to stop (gracefully,
once) or to die (at once): an :class:`Operator` passes that on to the command that runs at that moment.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from reside.sentinel.engine.errors import EngineKilled, EngineUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reside.sentinel.engine.resources import Resources


@dataclass(frozen=True)
class Program:
    """The program of a stack, for a command that needs one."""

    stack: str
    resources: Resources


@dataclass(frozen=True)
class Finished:
    """What a command came to; ``code`` is negative if it was ended from outside, by a signal or the engine's death."""

    stdout: str
    stderr: str
    code: int


class Running(Protocol):
    """One command that runs. ``stop`` and ``kill`` may be called by other threads, also after its end."""

    def wait(self) -> Finished:
        """Wait for its end."""
        ...

    def stop(self) -> None:
        """Ask it to end gracefully: what is in flight is finished and recorded. To be called once."""
        ...

    def kill(self) -> None:
        """End it now; when this returns, nothing of it writes to the cluster any more."""
        ...


class Runner(Protocol):
    """Runs the command lines that the Pulumi CLI takes."""

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> Running:
        """Start one; how the engine gets to the program is the runner's business.

        Raises:
            EngineUnavailable: It can't be started now.
        """
        ...

    def close(self) -> None:
        """End what stays alive between commands."""
        ...


class Operator:
    """Runs the commands of one operation, and lets others end it."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self._running: Running | None = None
        self._stopped = False
        self._killed = False

    @property
    def stopped(self) -> bool:
        """Whether it was told to stop: what fails from then on failed because of it."""
        return self._stopped

    def run(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> Finished:
        """Run a command to its end.

        Raises:
            EngineUnavailable: It was told to stop before, or no engine can be started.
            EngineKilled: It was killed.
        """
        self._check()
        running = self._runner.start(arguments, cwd, program)
        with self._lock:
            self._running = running
            stopped, killed = self._stopped, self._killed
        if killed:
            running.kill()
        elif stopped:
            running.stop()
        result = running.wait()
        with self._lock:
            self._running = None
        if self._killed:
            raise EngineKilled("the operation was cancelled; the next one repairs the stack")
        return result

    def stop(self) -> None:
        """Ask what runs to end gracefully, once: a second signal would make it leave resources behind."""
        with self._lock:
            first, self._stopped = not self._stopped, True
            running = self._running
        if first and running is not None:
            running.stop()

    def kill(self) -> None:
        """End what runs now."""
        with self._lock:
            self._killed = True
            running = self._running
        if running is not None:
            running.kill()

    def _check(self) -> None:
        if self._killed or self._stopped:
            raise EngineUnavailable("the engine is stopping")
