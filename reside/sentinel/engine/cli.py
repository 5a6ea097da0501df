"""The first adapter: the stock Pulumi command line, one process a command.

Each runs in a session of its own: when it dies in the middle or is killed, the whole session goes, because a provider
that outlives its engine would go on writing to the cluster. It ends gracefully when we die (prctl's parent-death
signal, by setpriv).
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from reside.resident.sessions import KILL_SECONDS, end_session
from reside.sentinel.engine.errors import EngineUnavailable
from reside.sentinel.engine.host import ProgramHost
from reside.sentinel.engine.running import Finished

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from reside.sentinel.engine.running import Program

_TIED = ("setpriv", "--pdeathsig", "TERM")


class CliRunner:
    """Runs ``pulumi``.

    Args:
        binary: Name or path of the command line.
        environment: What to add to our own.
        processes: How many may run at the same time; others wait.
    """

    def __init__(self, binary: str, environment: Mapping[str, str], processes: int) -> None:
        self._binary = binary
        self._processes = processes
        self._slots = threading.Semaphore(processes)
        self._making = threading.Lock()
        self._programs: ProgramHost | None = None
        self._environment = {**os.environ, **environment, "PULUMI_AUTOMATION_API": "true"}

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> CliRunning:
        """See :class:`reside.sentinel.engine.running.Runner`."""
        client = [f"--client={self._host().serve(program.stack, program.resources)}"] if program else []
        self._slots.acquire()
        try:
            process = subprocess.Popen(
                [*_TIED, self._binary, "--non-interactive", *arguments, *client],
                cwd=cwd,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
        except OSError:
            self._slots.release()
            raise
        return CliRunning(process, partial(self._ended, program))

    def _ended(self, program: Program | None) -> None:
        if program is not None:
            self._host().withdraw(program.stack)
        self._slots.release()

    def close(self) -> None:
        """Serve programs no more."""
        if self._programs is not None:
            self._programs.close()

    def _host(self) -> ProgramHost:
        with self._making:
            if self._programs is None:
                self._programs = ProgramHost(self._processes)
            return self._programs


class CliRunning:
    """One process of the command line, and what it started."""

    def __init__(self, process: subprocess.Popen[str], ended: Callable[[], None]) -> None:
        self._process = process
        self._ended = ended

    def wait(self) -> Finished:
        """See :class:`reside.sentinel.engine.running.Running`."""
        try:
            stdout, stderr = self._process.communicate()
            if self._process.returncode < 0:
                self.kill()
        finally:
            self._ended()
        return Finished(stdout, stderr, self._process.returncode)

    def stop(self) -> None:
        """Send one SIGTERM."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the whole session."""
        try:
            end_session(self._process.pid, KILL_SECONDS)
        except TimeoutError as error:
            raise EngineUnavailable(str(error)) from error
