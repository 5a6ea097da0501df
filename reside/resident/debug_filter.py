"""A patch of Pulumi's SDK: inline programs do not send debug messages that the engine would drop.

The SDK sends the engine a debug message for each step of registering a resource, at least four for each resource, and
waits for each response. With a resident engine, that is a fifth of the time of a small operation. The SDK has no
setting for it. Only the engine knows whether the messages are used (`--debug`, an event log). If they are not, it sets
metadata in its `About` request (engine/internal/operation/program.go), and the patched SDK drops the debug messages of
that program.

Invariants: all other messages are sent, and so are all messages of programs that a resident engine does not run.
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
"""What the engine adds to its `About` request if it would drop debug messages."""
_filtered: ContextVar[bool] = ContextVar("filtered", default=False)


class WithoutDebug:
    """A client of the engine that drops debug messages."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def Log(self, request: Any, *arguments: Any, **options: Any) -> Any:  # noqa: N802 - gRPC's name
        """Send a message unless it is a debug message."""
        if request.severity == engine_pb2.DEBUG:
            return None
        return self._engine.Log(request, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@cache
def install_debug_filter() -> None:
    """Install the patch; further calls have no effect.

    The client can be replaced only after the SDK has made the settings of a run, which are context variables, and
    before the program runs. That is when the SDK calls `run_in_stack`.
    """
    sdk: Any = _server  # its names are imported there, and not typed
    about, run, run_in_stack = sdk.LanguageServer.About, sdk.LanguageServer.Run, sdk.run_in_stack
    filtered: WeakSet[_server.LanguageServer] = WeakSet()

    @wraps(about)
    def patched_about(self: _server.LanguageServer, request: Any, context: Any) -> Any:
        if _METADATA in context.invocation_metadata():
            filtered.add(self)
        return about(self, request, context)

    @wraps(run)
    def patched_run(self: _server.LanguageServer, request: Any, context: Any) -> Any:
        token = _filtered.set(self in filtered)
        try:
            return run(self, request, context)
        finally:
            _filtered.reset(token)

    @wraps(run_in_stack)
    def patched_run_in_stack(func: PulumiFn) -> Coroutine[Any, Any, None]:
        engine = get_engine()
        if _filtered.get() and engine is not None:
            SETTINGS.engine = WithoutDebug(engine)
        running: Coroutine[Any, Any, None] = run_in_stack(func)
        return running

    sdk.LanguageServer.About, sdk.LanguageServer.Run, sdk.run_in_stack = (
        patched_about,
        patched_run,
        patched_run_in_stack,
    )
