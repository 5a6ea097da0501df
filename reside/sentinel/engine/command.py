"""The Pulumi command line as the Automation API's ``PulumiCommand``, run once an operation and stoppable.

It differs from the API's own in three points: it does not start ``pulumi version``; a failure is a result, not an
exception whose text holds the whole output; and the running process can be asked to stop, once (a second signal would
make the engine leave resources behind).
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import TYPE_CHECKING

from pulumi.automation import CommandResult, PulumiCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi.automation import OnOutput


class EngineCommand(PulumiCommand):
    """Runs ``pulumi``; at most one process at a time."""

    def __init__(self, binary: str) -> None:
        """Use ``binary``; its version is pinned by the toolchain, not asked for at each start."""
        self.command = binary
        self.version = None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._stopping = False

    def run(
        self,
        args: list[str],
        cwd: str,
        additional_env: Mapping[str, str],
        on_output: OnOutput | None = None,
        on_error: OnOutput | None = None,
    ) -> CommandResult:
        """Run one command to its end; the result's code is negative if a signal ended it."""
        environment = {**os.environ, **additional_env, "PULUMI_AUTOMATION_API": "true"}
        process = self._start([self.command, "--non-interactive", *args], cwd, environment)
        try:
            stdout, stderr = process.communicate()
        finally:
            self._process = None
        for text, receive in ((stdout, on_output), (stderr, on_error)):
            if receive is not None:
                for line in text.splitlines():
                    receive(line)
        return CommandResult(stdout=stdout, stderr=stderr, code=process.returncode)

    @property
    def stopping(self) -> bool:
        """Whether :meth:`stop` was called: what fails from then on failed because of it."""
        return self._stopping

    def stop(self) -> None:
        """Ask the running process to end gracefully; only the first call counts. Later runs are refused at once."""
        with self._lock:
            if self._stopping:
                return
            self._stopping = True
            if self._process is not None:
                self._process.send_signal(signal.SIGTERM)

    def _start(self, command: list[str], cwd: str, environment: dict[str, str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._stopping:
                raise StoppedError
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
            return self._process


class StoppedError(Exception):
    """A command was asked for after :meth:`EngineCommand.stop`."""
