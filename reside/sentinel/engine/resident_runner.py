"""The command runner that sends commands to a resident engine, which belongs to this Sentinel alone.

The command line runs what the resident engine does not serve. It runs everything as long as the resident engine does
not start.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog
from prometheus_client import Counter

from reside.resident import Call, Engine, EngineEnded, EngineUnavailable, Unserved
from reside.sentinel.engine.event_pipe import EventPipe
from reside.sentinel.engine.runner import CommandResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from reside.sentinel.engine.runner import CommandRunner, Program, RunningCommand

_log = structlog.get_logger(__name__)
_PROGRAM_FROM_STDIN: Final = "--client=stdin:"
"""The argument with which the resident engine reads the program, a declaration, from standard input."""
_PROGRAM_ALONE: Final = "--client=stdin:alone"
"""The same, with processes of providers that no other command uses."""
_EVENTS_IN_REPLY: Final = ("--event-log", "reply:")
"""The arguments with which the resident engine writes the events of a declaration to standard output. It does that only
if the state of the stack is in a file; else they come through a pipe, as those of the command line do."""
_TERMINATE_SECONDS = 5.0
"""How long a terminated command may take to end; then the engine is killed, with all commands that it runs."""

FALLBACKS = Counter(
    "reside_sentinel_engine_fallbacks_total",
    "Commands that the stock command line ran because the resident engine did not start.",
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
        pipe = EventPipe(program.events, program.receive) if program and not program.in_file else None
        log = ("--event-log", str(pipe.path)) if pipe else _EVENTS_IN_REPLY
        client = [*log, _PROGRAM_ALONE if program.alone else _PROGRAM_FROM_STDIN] if program else []
        stdin = program.document if program else ""
        try:
            call = self._engine.open(["--non-interactive", *arguments, *client], str(cwd), stdin)
        except (Unserved, EngineUnavailable) as error:
            if pipe is not None:
                pipe.end()
            if isinstance(error, EngineUnavailable):
                report_fallback(error)
            return self._fallback.start(arguments, cwd, program)
        return EngineCommand(call, self._engine, program, pipe)

    def close(self) -> None:
        """Stop the engine. After a time limit, running commands are interrupted, then the engine is killed."""
        self._engine.close()
        self._fallback.close()


class EngineCommand:
    """A `RunningCommand` inside the resident engine.

    Args:
        call: the command.
        engine: the engine that runs it.
        program: the program that it runs, if any.
        pipe: the pipe of its events; None if they are in the reply.
    """

    def __init__(
        self, call: Call, engine: Engine, program: Program | None = None, pipe: EventPipe | None = None
    ) -> None:
        self._call = call
        self._engine = engine
        self._program = program
        self._pipe = pipe
        self._ended = threading.Event()

    def wait(self) -> CommandResult:
        """Wait for the command; see `RunningCommand.wait`."""
        events = _Events(self._program.receive) if self._program and self._pipe is None else None
        try:
            result = self._call.finish(events.read if events else None)
        except EngineEnded as ended:
            result = ended.result
        finally:
            self._ended.set()
            if self._pipe is not None:
                self._pipe.end()
        source = events or self._pipe
        return CommandResult(result.stdout, result.stderr, result.code, source.failure if source else None)

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


class _Events:
    """A reader of the events on standard output, one JSON document a line.

    Attributes:
        failure: why the first event that could not be read could not.
    """

    def __init__(self, receive: Callable[[dict[str, Any]], None]) -> None:
        self.failure: Exception | None = None
        self._receive = receive

    def read(self, line: str) -> None:
        """Read one line."""
        try:
            self._receive(orjson.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            self.failure = self.failure or error
