"""Programs that keep their debug messages to themselves.

Pulumi's Python SDK (3.259) sends the engine a debug message for each step that it takes with a resource, four for each
and some more, whether anybody looks at them or not, and waits for the answer each time: with a resident engine a good
part of a small operation. They are seen with ``debug=True`` only, or by who reads diagnostic events of that severity.
The few that come before the program begins, or after it has ended, are sent.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from pulumi.runtime.proto import engine_pb2
from pulumi.runtime.settings import SETTINGS, get_engine

if TYPE_CHECKING:
    from pulumi.automation import PulumiFn


class _Quiet:
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


def quiet(program: PulumiFn) -> PulumiFn:
    """The same program without the SDK's debug messages: ``stack.up(program=quiet(program))``.

    All other messages arrive as ever, and other programs of the process are left alone. With or without a resident
    engine.
    """

    @wraps(program)
    def run() -> Any:
        # The settings are those of this run of the program: context variables behind an object.
        engine = get_engine()
        if engine is not None:
            SETTINGS.engine = _Quiet(engine)
        return program()

    return run
