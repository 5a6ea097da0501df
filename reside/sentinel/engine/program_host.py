"""Serves the programs of all operations to the command lines that run them, by one gRPC server.

The server is a language runtime in Pulumi's sense (`--client=ADDRESS`). An engine asks for the program of a stack by
the name of the stack; at most one operation runs on a stack. The program is a declaration.
"""

from __future__ import annotations

from concurrent import futures
from typing import TYPE_CHECKING, Any

import grpc  # type: ignore[import-untyped]  # no stubs in the lock file; few calls
from pulumi.runtime._grpc_settings import _GRPC_CHANNEL_OPTIONS
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from reside.sentinel.engine.declaration import InvalidDeclaration, decode
from reside.sentinel.engine.registration import register

if TYPE_CHECKING:
    from reside.sentinel.engine.runner import Program

_EXTRA_THREADS = 4
"""Threads for the short requests that engines make besides running programs."""
_INTERRUPTED = "the engine ended before it accepted all objects of the stack"
"""Reported as an error, because the engine deletes every object that a successful program did not register."""


class ProgramHost(language_pb2_grpc.LanguageRuntimeServicer):
    """A server of programs at a loopback address.

    Args:
        parallel: how many programs may run at the same time.
    """

    def __init__(self, parallel: int) -> None:
        self._documents: dict[str, str] = {}
        self._server = grpc.server(
            futures.ThreadPoolExecutor(parallel + _EXTRA_THREADS, "engine-program"), options=_GRPC_CHANNEL_OPTIONS
        )
        language_pb2_grpc.add_LanguageRuntimeServicer_to_server(self, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def serve(self, program: Program) -> str:
        """Serve a program until it is withdrawn; return the address."""
        self._documents[program.stack] = program.document
        return self.address

    def withdraw(self, stack: str) -> None:
        """Stop serving the program of a stack."""
        self._documents.pop(stack, None)

    def close(self) -> None:
        """Stop the server; programs that still run are aborted."""
        self._server.stop(0).wait()

    def Run(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - gRPC's signature
        """Run the program of the stack that the request names."""
        document = self._documents.get(request.stack)
        if document is None:
            return language_pb2.RunResponse(error=f"no operation on stack {request.stack} is running here")
        try:
            register(request.monitor_address, decode(document))
        except InvalidDeclaration as error:
            return language_pb2.RunResponse(error=str(error))
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                return language_pb2.RunResponse(error=_INTERRUPTED)
            return language_pb2.RunResponse(error=error.details())
        return language_pb2.RunResponse()

    def GetRequiredPlugins(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as above
        """Return none: the state or the program names the provider."""
        return language_pb2.GetRequiredPluginsResponse()

    def GetRequiredPackages(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as above
        """Return none, as `GetRequiredPlugins` does."""
        return language_pb2.GetRequiredPackagesResponse()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as above
        """Return no version: this runtime has none of its own."""
        return plugin_pb2.PluginInfo()

    def About(self, request: Any, context: Any) -> Any:  # noqa: N802, ARG002 - as above
        """Return the name of the runtime."""
        return language_pb2.AboutResponse(executable="reside-sentinel")
