"""The command runner that starts one process of the `pulumi` command line for each command.

Each process runs in a session of its own. When the process crashes or is killed, the whole session is killed, because a
provider that outlives its engine would continue to write to the cluster. When our own process crashes, the command line
gets SIGTERM (parent-death signal of prctl, set by setpriv) and ends gracefully.
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
from reside.sentinel.engine.event_pipe import EventPipe
from reside.sentinel.engine.runner import CommandResult, Unguarded

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from reside.sentinel.engine.program_host import ProgramHost
    from reside.sentinel.engine.runner import Program

_SETPRIV = ("setpriv", "--pdeathsig", "TERM")


class CliRunner:
    """A `CommandRunner` on the `pulumi` command line.

    Args:
        binary: the name or path of the command line.
        environment: variables that are added to our own environment.
        processes: how many processes may run at the same time; further commands wait.
    """

    def __init__(self, binary: str, environment: Mapping[str, str], processes: int) -> None:
        self._binary = binary
        self._processes = processes
        self._slots = threading.Semaphore(processes)
        self._host_lock = threading.Lock()
        self._host: ProgramHost | None = None
        self._environment = {**os.environ, **environment, "PULUMI_AUTOMATION_API": "true"}

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> CliCommand:
        """Start a process; see `CommandRunner.start`. It replaces whatever the provider wants to replace."""
        if program is not None and program.guarded:
            raise Unguarded
        client = [f"--client={self._program_host().serve(program)}"] if program else []
        self._slots.acquire()
        pipe = EventPipe(program.events, program.receive) if program else None
        log = ["--event-log", str(pipe.path)] if pipe else []
        try:
            process = subprocess.Popen(
                [*_SETPRIV, self._binary, "--non-interactive", *arguments, *log, *client],
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
            if pipe is not None:
                pipe.end()
            raise
        return CliCommand(process, pipe, partial(self._release, program))

    def close(self) -> None:
        """Stop serving programs."""
        if self._host is not None:
            self._host.close()

    def _release(self, program: Program | None) -> None:
        if program is not None:
            self._program_host().withdraw(program.stack)
        self._slots.release()

    def _program_host(self) -> ProgramHost:
        """Return the program host; it is started when it is first needed."""
        with self._host_lock:
            if self._host is None:
                from reside.sentinel.engine.program_host import ProgramHost  # noqa: PLC0415 - imports pulumi

                self._host = ProgramHost(self._processes)
            return self._host


class CliCommand:
    """A `RunningCommand` that is one process of the command line, with all processes of its session.

    Args:
        process: the process, which leads a session.
        pipe: the pipe of its events; None if it has no program.
        release: called when the process has ended.
    """

    def __init__(self, process: subprocess.Popen[str], pipe: EventPipe | None, release: Callable[[], None]) -> None:
        self._process = process
        self._pipe = pipe
        self._release = release

    def wait(self) -> CommandResult:
        """Wait for the process; see `RunningCommand.wait`."""
        try:
            stdout, stderr = self._process.communicate()
            if self._process.returncode < 0:
                self.kill()
        finally:
            if self._pipe is not None:
                self._pipe.end()
            self._release()
        return CommandResult(stdout, stderr, self._process.returncode, self._pipe.failure if self._pipe else None)

    def stop(self) -> None:
        """Send SIGTERM to the command line, which ends gracefully."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill all processes of the session, and wait until they have ended.

        Raises:
            EngineUnavailable: a process did not end.
        """
        try:
            end_session(self._process.pid, KILL_SECONDS)
        except TimeoutError as error:
            raise EngineUnavailable(str(error)) from error
