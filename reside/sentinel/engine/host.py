"""The programs of all operations, served to the command lines that ask for them: one gRPC server for all.

It is a language runtime in Pulumi's sense (``--client=ADDRESS``). An engine asks for the program of a stack by the
stack's name; there is at most one operation a stack.
"""

from __future__ import annotations

from concurrent import futures
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]  # no stubs in the lock file; few calls
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from reside.sentinel.engine.registering import register

if TYPE_CHECKING:
    from reside.sentinel.engine.resources import Resources

_OTHERS = 4
"""Threads for the short questions that engines ask besides having programs run."""
_BROKEN_OFF = "the engine took no more of the stack's objects"
"""A program that ended here without an error would be one that wants none of them: they would be deleted."""


class ProgramHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Serves programs at a loopback port, ``address``."""

    def __init__(self, parallel: int) -> None:
        """Have room for ``parallel`` programs at the same time."""
        self._programs: dict[str, Resources] = {}
        self._server = grpc.server(
            futures.ThreadPoolExecutor(parallel + _OTHERS, "engine-program"), options=_GRPC_CHANNEL_OPTIONS
        )
        language_pb2_grpc.add_LanguageRuntimeServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def serve(self, stack: str, program: Resources) -> str:
        """Have ``program`` for ``stack``; returns the address."""
        self._programs[stack] = program
        return self.address

    def withdraw(self, stack: str) -> None:
        """Forget the stack's program."""
        self._programs.pop(stack, None)

    def close(self) -> None:
        """Serve no more; programs that still run are broken off."""
        self._server.stop(0).wait()

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - gRPC's signature
        """Run the program of the request's stack."""
        program = self._programs.get(request.stack)
        if program is None:
            return language_pb2.RunResponse(error=f"no operation on stack {request.stack} is running here")
        try:
            register(request.monitor_address, request.project, request.stack, program)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                return language_pb2.RunResponse(error=_BROKEN_OFF)
            return language_pb2.RunResponse(error=error.details())
        return language_pb2.RunResponse()

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as above
        """The provider stands in the state or in the program: nothing to name."""
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as above
        """See :meth:`GetRequiredPlugins`."""
        return language_pb2.GetRequiredPackagesResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as above
        """This runtime has no version of its own."""
        return plugin_pb2.PluginInfo()

    def About(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as above
        """Name the runtime."""
        return language_pb2.AboutResponse(executable="reside-sentinel")
