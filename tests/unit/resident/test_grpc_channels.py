"""A port that an engine reuses: its connections are independent of those of the earlier operation."""

from __future__ import annotations

from concurrent import futures
from contextvars import copy_context
from typing import Any

import grpc
import pytest
from pulumi.runtime.proto import resource_pb2, resource_pb2_grpc
from pulumi.runtime.settings import Settings
from support.eventually import eventually_sync

from reside.resident import ResidentCommand


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    """Supports every feature."""

    def SupportsFeature(self, _request: Any, _context: Any) -> Any:  # noqa: N802 - gRPC's name
        """Return that the feature is supported."""
        return resource_pb2.SupportsFeatureResponse(hasSupport=True)


def serve(port: int = 0) -> tuple[Any, int]:
    """Return a monitor at a port, and the port."""
    server = grpc.server(futures.ThreadPoolExecutor(2))
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(Monitor(), server)
    taken = server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    return server, taken


def program(port: int) -> Any:
    """Return the monitor that the SDK creates for a program, in a context of its own, which creating it changes."""
    return copy_context().run(lambda: Settings(project="p", stack="s", monitor=f"127.0.0.1:{port}").monitor)


def answered(monitor: Any) -> bool:
    """Return whether the program's monitor responds."""
    return bool(monitor.SupportsFeature(resource_pb2.SupportsFeatureRequest(id="secrets")).hasSupport)


def fault(monitor: Any) -> str:
    """Return why the program's monitor does not respond."""
    with pytest.raises(grpc.RpcError) as raised:
        answered(monitor)
    return str(raised.value)


def test_a_port_of_an_ended_engine_can_be_used_again() -> None:
    ResidentCommand()
    server, port = serve()
    before = program(port)
    assert answered(before)
    server.stop(None).wait()
    # At first, the connection may just be ending
    eventually_sync("a refused connection", lambda: fault(before), lambda seen: "Connection refused" in seen)
    server, _ = serve(port)
    try:
        assert answered(program(port))
    finally:
        server.stop(None).wait()
