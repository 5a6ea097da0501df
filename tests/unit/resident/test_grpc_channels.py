"""A port that an engine reuses: its connections are independent of those of the earlier operation."""

from __future__ import annotations

from concurrent import futures
from contextvars import copy_context
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc
from pulumi.runtime.settings import Settings

from reside.resident import ResidentCommand


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Has every feature."""

    def SupportsFeature(self, _request: Any, _context: Any) -> Any:  # noqa: N802 - gRPC's name
        """Yes."""
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)


def serve(port: int = 0) -> tuple[Any, int]:
    """Return a monitor at a port, and the port."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(Monitor(), server)
    taken = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, taken


def program(port: int) -> Any:
    """Return the monitor that the SDK makes for a program, made in a context of its own, which making it sets."""
    return copy_context().run(lambda: Settings(project="p", stack="s", monitor=f"127.0.0.1:{port}").monitor)


def answered(monitor: Any) -> bool:
    """Whether the program's monitor answers."""
    return bool(monitor.SupportsFeature(resource_pb2.SupportsFeatureRequest(id="secrets")).hasSupport)


def test_a_port_that_an_ended_engine_had_is_no_obstacle() -> None:
    ResidentCommand()
    server, port = serve()
    before = program(port)
    assert answered(before)
    server.stop(None).wait()
    with pytest.raises(grpc.RpcError, match="Connection refused"):
        answered(before)
    server, _ = serve(port)
    try:
        assert answered(program(port))
    finally:
        server.stop(None).wait()
