"""A machine that reaches the API server of one Kubernetes cluster and nothing else: no pod, no Service, no registry.

It is a network namespace with a loopback interface alone, which has the address of the API server. What connects there
is passed on, byte for byte, over a unix socket to a process of the machine's own namespace, and from there to the API
server. So a kubeconfig works on both sides.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from support.platform import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def api_only(server: str, folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the beginning of a command that runs on such a machine.

    Args:
        server: URL of the API server.
        folder: folder for the unix socket.
    """
    where, socket = urlsplit(server).netloc, str(folder / "api.sock")
    address = where.rpartition(":")[0]
    module = (sys.executable, "-m", "support.api_only")
    own_network = ("unshare", "--net", "sh", "-c", f'ip addr add {address}/32 dev lo && ip link set lo up && exec "$@"')
    with ExitStack() as stack:
        stack.enter_context(_running(*module, "outer", socket, where))
        inner = stack.enter_context(_running(*own_network, "sh", *module, "inner", socket, where))
        yield ("nsenter", f"--net=/proc/{inner.pid}/ns/net", "--")


@contextmanager
def _running(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Run a forwarder while the block is open, once it listens."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT / "tests") as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listening\n"
            yield process
        finally:
            process.terminate()


async def _serve(role: str, socket: str, where: str) -> None:
    host, _, port = where.rpartition(":")
    is_outer = role == "outer"

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        passing_on = asyncio.open_connection(host, int(port)) if is_outer else asyncio.open_unix_connection(socket)
        source, sink = await passing_on
        await asyncio.gather(_copy(reader, sink), _copy(source, writer))

    server = await (
        asyncio.start_unix_server(handle, socket) if is_outer else asyncio.start_server(handle, host, int(port))
    )
    print("listening", flush=True)  # noqa: T201 - the test waits for it
    async with server:
        await server.serve_forever()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await source.read(1 << 16):
            sink.write(piece)
            await sink.drain()
    sink.close()


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
