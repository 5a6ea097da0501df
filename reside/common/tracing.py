"""Traces: spans, and the context that connects the spans of several processes.

A process records spans after `enable`, which the standard variables of OpenTelemetry switch on. Without it nothing of
OpenTelemetry is imported, and a span does nothing but pass on the context that it was given.

The context is a `traceparent`, a header of a call or a member of stored data. It may come from a stranger, so only its
fixed format is accepted (`reside.common.traceparent`); `tracestate` and baggage are neither read nor sent.

Invariants: attributes contain names, ids and numbers, and never content; an error is recorded as the name of its type.
A receiver of spans that is slow, unreachable or refuses them disturbs nothing.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

Kind = Literal["internal", "client", "server"]
Attributes = dict[str, str | int]
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_LAST_SPANS_WITHIN_S: Final = 3.0


class Span:
    """A span that is not recorded; `reside.common.trace_export` has the one that is."""

    def set(self, name: str, value: str | int) -> None:
        """Set an attribute."""

    def fail(self, reason: str) -> None:
        """Mark the span as failed."""


class Recorder(Protocol):
    """What records the spans of a process."""

    def span(self, name: str, kind: Kind, parent: str | None, attributes: Attributes) -> AbstractContextManager[Span]:
        """Record a span while the block runs."""

    def current(self) -> str | None:
        """Return the context of the span that runs now."""

    def close(self, within_s: float) -> bool:
        """Send the last spans; return whether all spans were sent."""


_recorder: Recorder | None = None
_passed_on: ContextVar[str | None] = ContextVar("passed_on", default=None)


def is_recording() -> bool:
    """Return whether this process records spans."""
    return _recorder is not None


def current() -> str | None:
    """Return the traceparent to send or to store; None outside of a trace."""
    return _passed_on.get() if _recorder is None else _recorder.current()


@contextmanager
def span(
    name: str, kind: Kind = "internal", *, parent: str | None = None, attributes: Attributes | None = None
) -> Iterator[Span]:
    """Record what the block does as a span.

    Args:
        name: what is done; one of a few names, without ids.
        kind: `client` and `server` for the two sides of a call.
        parent: traceparent of the cause, which may be in another process; None: the span that runs now, and without
            one a new trace begins.
        attributes: names, ids and numbers; no secrets.
    """
    if _recorder is not None:
        with _recorder.span(name, kind, parent, attributes or {}) as recorded:
            yield recorded
        return
    token = None if parent is None else _passed_on.set(parent)
    try:
        yield Span()
    finally:
        if token is not None:
            _passed_on.reset(token)


@contextmanager
def step(name: str, cause: str | None, attributes: Attributes | None = None) -> Iterator[Span]:
    """Record a span of work whose cause is in stored data; without a cause in a trace, record nothing."""
    if cause is None:
        yield Span()
    else:
        with span(name, parent=cause, attributes=attributes) as recorded:
            yield recorded


def is_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the variables of OpenTelemetry ask for traces by OTLP."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    if environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp":
        return False
    return any(environment.get(name) for name in _ENDPOINTS)


def enable(service: str) -> None:
    """Record the spans of this process from now on, if the environment asks for it.

    Args:
        service: name of this process in traces, unless `OTEL_SERVICE_NAME` has one.
    """
    global _recorder  # noqa: PLW0603 - one recorder for a process, as with logs
    if _recorder is not None or not is_wanted():
        return
    try:
        from reside.common.trace_export import OtlpRecorder  # noqa: PLC0415 - takes half a second

        _recorder = OtlpRecorder(service)
    except Exception as error:  # noqa: BLE001 - a wrong variable of OpenTelemetry must not stop a replica
        import structlog  # noqa: PLC0415 - the command's help does without it

        structlog.get_logger(__name__).warning(
            "traces are off: OpenTelemetry refuses its variables", kind=type(error).__name__
        )


def disable(within_s: float = _LAST_SPANS_WITHIN_S) -> bool:
    """Send the last spans and stop recording; return whether all spans of this process were sent."""
    global _recorder
    recorder, _recorder = _recorder, None
    return recorder is None or recorder.close(within_s)
