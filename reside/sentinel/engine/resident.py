"""The second adapter: Pulumi's engine kept resident, for this Sentinel alone.

What it does not serve, and everything while it does not come up, is run by the stock command line.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import orjson
import structlog
from prometheus_client import Counter

from reside.resident import Call, Engine, EngineDied, EngineUnavailable, Unserved
from reside.sentinel.engine.declaration import CLIENT, declaration
from reside.sentinel.engine.running import Finished

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reside.sentinel.engine.running import Program, Runner, Running

_log = structlog.get_logger(__name__)
_TERMINATE_SECONDS = 5.0
"""How long a command that was terminated may take to end; then the engine is killed, whatever else it does."""


FALLBACKS = Counter(
    "reside_sentinel_engine_fallbacks_total", "Commands that the stock command line ran: no resident engine came up."
)


def warn(error: EngineUnavailable) -> None:
    """Say that operations take ten times as long as they should, and why."""
    FALLBACKS.inc()
    _log.warning("the resident engine does not come up, the slow command line is used", error=str(error))


class ResidentRunner:
    """Runs commands on an engine of our own.

    Args:
        engine: It starts with the first command.
        fallback: Runs what the engine does not.
    """

    def __init__(self, engine: Engine, fallback: Runner) -> None:
        self._engine = engine
        self._fallback = fallback

    def start(self, arguments: Sequence[str], cwd: Path, program: Program | None = None) -> Running:
        """See :class:`reside.sentinel.engine.running.Runner`; a program goes to the engine as data."""
        whole, stdin = ["--non-interactive", *arguments], ""
        if program is not None:
            whole.append(f"--client={CLIENT}")
            stdin = orjson.dumps(declaration(program.stack, program.resources)).decode()
        try:
            return ResidentRunning(self._engine.open(whole, str(cwd), stdin), self._engine)
        except Unserved:
            return self._fallback.start(arguments, cwd, program)
        except EngineUnavailable as error:
            warn(error)
            return self._fallback.start(arguments, cwd, program)

    def close(self) -> None:
        """End the engine: what runs may finish, then it is interrupted, then killed."""
        self._engine.close()
        self._fallback.close()


class ResidentRunning:
    """One command on the engine."""

    def __init__(self, call: Call, engine: Engine) -> None:
        self._call = call
        self._engine = engine
        self._ended = threading.Event()

    def wait(self) -> Finished:
        """See :class:`reside.sentinel.engine.running.Running`."""
        try:
            result = self._call.finish()
        except EngineDied as died:
            result = died.result
        finally:
            self._ended.set()
        return Finished(result.stdout, result.stderr, result.code)

    def stop(self) -> None:
        """Send one interrupt."""
        self._call.interrupt()

    def kill(self) -> None:
        """Terminate the command; if that does not end it, kill the engine with all that it does."""
        self._call.interrupt()
        self._call.interrupt()
        if not self._ended.wait(_TERMINATE_SECONDS):
            self._engine.kill()
