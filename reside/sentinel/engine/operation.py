"""One operation on a stack: a sequence of engine commands that runs on one thread and can be stopped and killed.

What happens when an apply is cancelled is in three files. `engine` calls `Operation.kill` and waits until the thread of
the operation ends. `Operation.kill` terminates the command that runs now, and no further command starts. The command
runner (`resident_runner` or `cli_runner`) terminates the command and, if necessary, the processes that run it. The next
operation on the stack finds the mark of an interrupted operation (`stack_files`) and begins with a refresh.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from reside.sentinel.engine.errors import EngineKilled, EngineUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reside.sentinel.engine.port import ChangeSet
    from reside.sentinel.engine.runner import CommandResult, CommandRunner, Program, RunningCommand


class Operation(ABC):
    """An operation; `run` is called once, `stop` and `kill` may be called from other threads at any time.

    Args:
        runner: runs the commands of the operation.
    """

    def __init__(self, runner: CommandRunner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self._command: RunningCommand | None = None
        self._stopped = False
        self._killed = False

    @abstractmethod
    def run(self) -> ChangeSet:
        """Run the operation to its end, blocking.

        Raises:
            EngineKilled: `kill` was called.
            EngineError: the operation failed.
        """

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called; a command that fails afterwards failed because of it."""
        return self._stopped

    def stop(self) -> None:
        """Ask the running command to end gracefully, and start no further command.

        The command is asked once only: a second request would terminate it and could leave resources behind.
        """
        with self._lock:
            first, self._stopped = not self._stopped, True
            command = self._command
        if first and command is not None:
            command.stop()

    def kill(self) -> None:
        """Terminate the running command, and start no further command.

        After this returns, nothing of the operation writes to the cluster.
        """
        with self._lock:
            self._killed = True
            command = self._command
        if command is not None:
            command.kill()

    def _execute(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> CommandResult:
        """Run one command to its end.

        Raises:
            EngineUnavailable: the operation was stopped or killed before, or the command cannot be started.
            EngineKilled: the operation was killed while the command ran.
        """
        if self._stopped or self._killed:
            raise EngineUnavailable("the engine is stopping")
        command = self._runner.start(arguments, cwd, program)
        with self._lock:
            self._command = command
            stopped, killed = self._stopped, self._killed
        if killed:  # stop or kill was called while the command was starting
            command.kill()
        elif stopped:
            command.stop()
        result = command.wait()
        with self._lock:
            self._command = None
        if self._killed:
            raise EngineKilled("the operation was cancelled; the next operation repairs the stack")
        return result
