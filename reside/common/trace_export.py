"""Record spans with the SDK of OpenTelemetry, and send them by OTLP over HTTP.

All settings are OpenTelemetry's variables: endpoint, headers, timeout, sampler, limits. Spans are sent by a thread with
a bounded queue; what does not fit is dropped. Only `reside.common.tracing` imports this module, and only if it is used.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags

from reside.common.tracing import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan

    from reside.common.tracing import Attributes, Kind

_KINDS: Final = {"internal": SpanKind.INTERNAL, "client": SpanKind.CLIENT, "server": SpanKind.SERVER}


class OtlpRecorder:
    """Records the spans of this process.

    Args:
        service: name of this process, unless `OTEL_SERVICE_NAME` has one.
    """

    def __init__(self, service: str) -> None:
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: service}
        self._exporter = _Counting(OTLPSpanExporter())
        self._provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("reside")

    @contextmanager
    def span(self, name: str, kind: Kind, parent: str | None, attributes: Attributes) -> Iterator[Span]:
        """See `reside.common.tracing.span`."""
        with self._tracer.start_as_current_span(
            name,
            None if parent is None else _remote(parent),
            _KINDS[kind],
            dict(attributes),
            record_exception=False,  # its message and its traceback are content
            set_status_on_exception=False,
        ) as started:
            recorded = _Recorded(started)
            try:
                yield recorded
            except Exception as error:
                recorded.fail(type(error).__name__)
                raise

    def current(self) -> str | None:
        """Return the context of the span that runs now."""
        context = trace.get_current_span().get_span_context()
        if not context.is_valid:
            return None
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags & 1:02x}"

    def close(self, within_s: float) -> bool:
        """Send the last spans; return whether all spans were sent."""
        closing = Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        closing.start()
        closing.join(within_s)
        return not closing.is_alive() and not self._exporter.has_failed


class _Recorded(Span):
    def __init__(self, started: trace.Span) -> None:
        self._started = started

    def set(self, name: str, value: str | int) -> None:
        self._started.set_attribute(name, value)

    def fail(self, reason: str) -> None:
        self._started.set_attribute("error.type", reason)
        self._started.set_status(Status(StatusCode.ERROR))


class _Counting(SpanExporter):
    """An exporter that notes whether it has failed, and raises nothing."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.has_failed = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            result = self._exporter.export(spans)
        except Exception as error:  # noqa: BLE001 - whatever the library raises, spans are only lost
            logging.getLogger(__name__).warning("spans are lost: %s", type(error).__name__)
            result = SpanExportResult.FAILURE
        self.has_failed |= result is not SpanExportResult.SUCCESS
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _remote(traceparent: str) -> Context:
    _, trace_id, span_id, flags = traceparent.split("-")
    sampled = TraceFlags(int(flags, 16) & TraceFlags.SAMPLED)
    context = SpanContext(int(trace_id, 16), int(span_id, 16), is_remote=True, trace_flags=sampled)
    return trace.set_span_in_context(NonRecordingSpan(context))
