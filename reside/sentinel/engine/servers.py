"""The two small gRPC servers that one engine run talks to: the inline program and the event log.

They are what the Automation API starts inside ``Stack.up()``. Ours hands each event on as the JSON that it is,
remembers an event that could not be read as a failure instead of warning, and knows when the log has ended.
"""

from __future__ import annotations

import json
import threading
from concurrent import futures
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]  # no stubs in the lock file; four calls
from google.protobuf import empty_pb2  # type: ignore[import-untyped]  # as above
from pulumi.automation._server import LanguageServer
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import events_pb2_grpc, language_pb2_grpc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_END_OF_LOG_SECONDS = 10.0


class EventLog(events_pb2_grpc.EventsServicer):
    """Receives the engine's events, in order, on a thread of the server."""

    def __init__(self, receive: Callable[[dict[str, Any]], None]) -> None:
        """Hand each event to ``receive``."""
        self._receive = receive
        self._begun = threading.Event()
        self._ended = threading.Event()
        self.failure: Exception | None = None

    def StreamEvents(self, request_iterator: Any, context: Any) -> Any:  # noqa: N802, ARG002 - gRPC's signature
        """Take events until the engine closes the stream."""
        self._begun.set()
        try:
            for request in request_iterator:
                self._receive(json.loads(request.event))
        except grpc.RpcError:
            pass  # the engine died; its exit code says so
        except (ValueError, KeyError, TypeError) as error:
            self.failure = error
        finally:
            self._ended.set()
        return empty_pb2.Empty()

    def wait(self) -> bool:
        """Wait for the end of the log, which may come after the engine's; False if it did not come in time."""
        return not self._begun.is_set() or self._ended.wait(_END_OF_LOG_SECONDS)


@contextmanager
def serving(program: Callable[[], None], log: EventLog) -> Iterator[str]:
    """Serve ``program`` and ``log`` on one loopback port, given as ``host:port``."""
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=4), options=_GRPC_CHANNEL_OPTIONS)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageServer(program), server)
    events_pb2_grpc.add_EventsServicer_to_server(log, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield address
    finally:
        server.stop(0).wait()
