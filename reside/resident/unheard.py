"""Inline programs that nobody listens to keep their debug messages to themselves.

Pulumi's Python SDK (3.259) sends the engine a debug message for each step that it takes with a resource, four for each
and some more, whether anybody looks at them or not, and waits for the answer each time: with a resident engine a fifth
of a small operation. Only the engine knows whether anybody does (``--debug``, an event log), so it says so when it asks
the program what it is (engine/internal/operation/program.go), and the SDK, which has no switch for it, is taught here
to heed that.

Invariants: every other message arrives as ever, and so does every message of a program that no resident engine was
asked to run.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache, wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pulumi.automation import _server
from pulumi.runtime.proto import engine_pb2
from pulumi.runtime.settings import SETTINGS, get_engine

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from pulumi.automation import PulumiFn

_METADATA = ("debug-messages", "unheard")
_unheard: ContextVar[bool] = ContextVar("unheard", default=False)


class WithoutDebug:
    """An engine's client that answers debug messages itself."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def Log(self, request: Any, *arguments: Any, **options: Any) -> Any:  # noqa: N802 - gRPC's name
        """Send the message, unless it is one for debugging."""
        if request.severity == engine_pb2.DEBUG:
            return None
        return self._engine.Log(request, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@cache
def teach_sdk() -> None:
    """Make the SDK's server of inline programs heed what the engine says; once a process.

    It has to be between the SDK's making of a run's settings, which are context variables, and the run.
    """
    sdk: Any = _server  # its names are imported there, and not typed
    about, run, run_in_stack = sdk.LanguageServer.About, sdk.LanguageServer.Run, sdk.run_in_stack
    told: WeakSet[_server.LanguageServer] = WeakSet()

    @wraps(about)
    def listening_about(self: _server.LanguageServer, request: Any, context: Any) -> Any:
        if _METADATA in context.invocation_metadata():
            told.add(self)
        return about(self, request, context)

    @wraps(run)
    def run_unheard(self: _server.LanguageServer, request: Any, context: Any) -> Any:
        token = _unheard.set(self in told)
        try:
            return run(self, request, context)
        finally:
            _unheard.reset(token)

    @wraps(run_in_stack)
    def start(func: PulumiFn) -> Coroutine[Any, Any, None]:
        engine = get_engine()
        if _unheard.get() and engine is not None:
            SETTINGS.engine = WithoutDebug(engine)
        running: Coroutine[Any, Any, None] = run_in_stack(func)
        return running

    sdk.LanguageServer.About, sdk.LanguageServer.Run, sdk.run_in_stack = listening_about, run_unheard, start
