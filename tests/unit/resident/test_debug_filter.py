"""Which debug messages of an inline program are sent, depending on the metadata of the engine's request."""

from __future__ import annotations

from concurrent import futures
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import grpc
import pulumi
import pytest
from google.protobuf import empty_pb2
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, language_pb2, resource_pb2, resource_pb2_grpc

from reside.resident import ResidentCommand

if TYPE_CHECKING:
    from collections.abc import Iterator


class Engine(engine_pb2_grpc.EngineServicer):
    """Records its calls."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def Log(self, request: Any, _context: Any) -> empty_pb2.Empty:  # noqa: N802 - gRPC's name
        """Record it."""
        self.heard.append((engine_pb2.LogSeverity.Name(request.severity), request.message))
        return empty_pb2.Empty()


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Registers a stack."""

    def RegisterResource(self, _request: Any, _context: Any) -> Any:  # noqa: N802 - gRPC's name
        """Return the stack's answer."""
        return resource_pb2.RegisterResourceResponse(urn="urn:pulumi:s::p::pulumi:pulumi:Stack::p-s")

    def RegisterResourceOutputs(self, _request: Any, _context: Any) -> empty_pb2.Empty:  # noqa: N802 - gRPC's name
        """Return an empty response."""
        return empty_pb2.Empty()


@pytest.fixture
def engine() -> Iterator[tuple[Engine, str]]:
    """Yield an engine as a program sees it, and its address."""
    told = Engine()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    engine_pb2_grpc.add_EngineServicer_to_server(told, server)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(Monitor(), server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield told, address
    server.stop(None).wait()


def talk() -> None:
    """Log a message of each severity."""
    for say in (pulumi.log.debug, pulumi.log.info, pulumi.log.warn, pulumi.log.error):
        say(say.__name__)


async def talk_later() -> None:
    """Do the same in a coroutine function."""
    talk()


@pytest.mark.parametrize("program", [talk, talk_later])
def test_only_debug_messages_without_a_listener_are_dropped(engine: tuple[Engine, str], program: Any) -> None:
    ResidentCommand()
    told, address = engine
    counts = []
    for metadata in ([], [("debug-messages", "unheard")], [("other", "unheard")], [("debug-messages", "unheard")]):
        told.heard.clear()
        server = LanguageServer(program)  # the SDK makes one for each operation
        server.About(language_pb2.AboutRequest(), SimpleNamespace(invocation_metadata=lambda: metadata))  # noqa: B023
        request = language_pb2.RunRequest(project="p", stack="s", parallel=4, monitor_address=address, args=[address])
        assert server.Run(request, None).error == ""
        assert [said for said in told.heard if said[0] != "DEBUG"] == [
            ("INFO", "info"),
            ("WARNING", "warn"),
            ("ERROR", "error"),
        ]
        counts.append(len(told.heard) - 3)
    assert counts[1] == counts[3] == 0
    assert counts[0] == counts[2] > 3
