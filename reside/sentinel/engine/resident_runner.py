"""The command runner that sends commands to a resident engine, which belongs to this Sentinel alone.

The command line runs what the resident engine does not serve. It runs everything as long as the resident engine does
not start.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

import structlog
from prometheus_client import Counter

from reside.resident import Call, Engine, EngineDied, EngineUnavailable, Unserved
from reside.sentinel.engine.runner import CommandResult

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reside.sentinel.engine.runner import CommandRunner, Program, RunningCommand

_log = structlog.get_logger(__name__)
_PROGRAM_FROM_STDIN: Final = "--client=stdin:"
"""The argument with which the resident engine reads the program, a declaration, from standard input."""
_TERMINATE_SECONDS = 5.0
"""How long a terminated command may take to end; then the engine is killed, with all commands that it runs."""

FALLBACKS = Counter(
    "reside_sentinel_engine_fallbacks_total",
    "Commands that the command line ran because the resident engine did not start.",
)


def report_fallback(error: EngineUnavailable) -> None:
    """Log and count that the command line is used; each operation takes ten times as long."""
    FALLBACKS.inc()
    _log.warning("the resident engine does not start; the slower command line is used", error=str(error))


class ResidentRunner:
    """A `CommandRunner` on a resident engine.

    Args:
        engine: the resident engine; it starts with the first command.
        fallback: runs the commands that the engine does not run.
    """

    def __init__(self, engine: Engine, fallback: CommandRunner) -> None:
        self._engine = engine
        self._fallback = fallback

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> RunningCommand:
        """Start a command in the engine; see `CommandRunner.start`."""
        client = [_PROGRAM_FROM_STDIN] if program else []
        stdin = program.document if program else ""
        try:
            call = self._engine.open(["--non-interactive", *arguments, *client], str(cwd), stdin)
        except Unserved:
            return self._fallback.start(arguments, cwd, program)
        except EngineUnavailable as error:
            report_fallback(error)
            return self._fallback.start(arguments, cwd, program)
        return EngineCommand(call, self._engine)

    def close(self) -> None:
        """Stop the engine. After a time limit, running commands are interrupted, then the engine is killed."""
        self._engine.close()
        self._fallback.close()


class EngineCommand:
    """A `RunningCommand` inside the resident engine."""

    def __init__(self, call: Call, engine: Engine) -> None:
        self._call = call
        self._engine = engine
        self._ended = threading.Event()

    def wait(self) -> CommandResult:
        """Wait for the command; see `RunningCommand.wait`."""
        try:
            result = self._call.finish()
        except EngineDied as died:
            result = died.result
        finally:
            self._ended.set()
        return CommandResult(result.stdout, result.stderr, result.code)

    def stop(self) -> None:
        """Send the first interrupt, which cancels the command gracefully."""
        self._call.interrupt()

    def kill(self) -> None:
        """Terminate the command; if it does not end within 5 s, kill the engine with all its processes.

        Two interrupts terminate the command, as two interrupts of a terminal do. Killing the engine also ends the
        other operations that it runs; their stacks are repaired by their next operations.
        """
        self._call.interrupt()
        self._call.interrupt()
        if not self._ended.wait(_TERMINATE_SECONDS):
            self._engine.kill()
