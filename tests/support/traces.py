"""A receiver of traces by OTLP over HTTP, and the recording of this process' spans."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from reside.common import tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

_WITHIN_S = 60.0


@dataclass(frozen=True)
class Received:
    """One span, as a receiver sees it."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    failed: bool
    attributes: dict[str, Any] = field(default_factory=dict)


class Receiver:
    """A collector that keeps all spans.

    Attributes:
        url: its address, for `OTEL_EXPORTER_OTLP_ENDPOINT`.
        status: the status with which it answers.
    """

    def __init__(self) -> None:
        self.status = 200
        self.spans: list[Received] = []
        self.bodies: list[bytes] = []
        self._changed = Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                self.send_response(receiver.status)
                self.send_header("content-length", "0")
                self.end_headers()
                if self.path == "/v1/traces":
                    receiver._receive(body)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def trace_of(self, name: str) -> str:
        """Return the trace of the only span with a name."""
        (found,) = {span.trace for span in self.spans if span.name == name}
        return found

    def wait(self, holds: Callable[[list[Received]], object]) -> list[Received]:
        """Wait until a condition holds for all spans so far, and return them; call it in a thread."""
        with self._changed:
            done = self._changed.wait_for(lambda: holds(self.spans), _WITHIN_S)
            assert done, f"the spans so far: {[(span.service, span.name) for span in self.spans]}"
            return list(self.spans)

    def _receive(self, body: bytes) -> None:
        message = ExportTraceServiceRequest.FromString(body)
        found = [
            Received(
                _attributes(resource.resource.attributes)["service.name"],
                span.name,
                span.trace_id.hex(),
                span.span_id.hex(),
                span.parent_span_id.hex(),
                span.status.code == span.status.STATUS_CODE_ERROR,
                _attributes(span.attributes) | ({"events": list(span.events)} if span.events else {}),
            )
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        with self._changed:
            self.bodies.append(body)
            self.spans.extend(found)
            self._changed.notify_all()


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Run a receiver while the block is open."""
    made = Receiver()
    try:
        yield made
    finally:
        made.close()


@contextmanager
def recording(to: Receiver, patch: pytest.MonkeyPatch, service: str = "tests") -> Iterator[None]:
    """Record the spans of this process while the block is open, and send them without delay."""
    patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.url)
    patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    tracing.enable(service)
    try:
        yield
    finally:
        tracing.disable()
