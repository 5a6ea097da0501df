"""Measure calls between replicas, for the four pairs of caller and callee in Python and TypeScript.

The callees are the example greeters: each call is signed, verified, checked for its permission, and its body and
response are validated. A caller calls for some seconds with eight tasks, which gives the rate, and with one task, which
gives the times. The same caller then sends the same body, without token, with the same HTTP client, to a bare server in
the callee's language: `node:http`, and Starlette on uvicorn. Every request has 14 bytes of body, over loopback and
connections that are kept open. Caller and callee are processes of one thread each; CPU is that of all their threads.

Target: at least half of the rate of the bare server, and less than 2 ms more for 95 % of the calls of one task.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "tests"), str(Path(__file__).resolve().parents[1])]

from support.eventually import eventually  # noqa: E402 - needs the path above, as all that follow
from support.jazz_server import node_binary  # noqa: E402
from support.ports import free_port  # noqa: E402
from support.replicas import GREETING, environment, run_alpha_double, run_servers  # noqa: E402
from support.typescript import TypeScript  # noqa: E402

from benchmarks.command import run  # noqa: E402
from benchmarks.processes import cpu_s, memory_mib  # noqa: E402
from reside.model.endpoints import rpc_path  # noqa: E402
from reside.model.permissions import Grant, PermissionRef  # noqa: E402
from reside.replica.client import call_method  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from support.replicas import AlphaDouble, Identity

    from reside.jazz import Credentials

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[1]
RUNNING = "registry.example/contracts/running.v1"
LANGUAGES = ("python", "typescript")
TASKS = 8
WARM_UP_S = 2.0


@dataclass(frozen=True)
class Server:
    """A process that is called: its process id, and how a caller names it."""

    pid: int
    target: str


@dataclass(frozen=True)
class Caller:
    """A process that calls."""

    pid: int
    identity: Identity
    port: int
    client: Credentials
    http: httpx2.AsyncClient

    async def run(self, target: str, tasks: int, seconds: float) -> dict[str, Any]:
        """Let it call for some seconds."""
        result: Any = await call_method(
            self.http,
            self.client,
            endpoint=f"http://127.0.0.1:{self.port}",
            receiver=self.identity.credentials.account_id,
            path=rpc_path(self.identity.settings.replica_name, RUNNING, "run"),
            body={"target": target, "tasks": tasks, "seconds": seconds},
        )
        return dict(result)


@dataclass(frozen=True)
class Result:
    """What one caller and one server have done: calls a second, ms, and ms of CPU for each call."""

    rate: float
    p50: float
    p95: float
    caller_cpu: float
    server_cpu: float


@asynccontextmanager
async def process(
    command: Sequence[str | Path], variables: dict[str, str], url: str, folder: Path
) -> AsyncIterator[int]:
    """Run a program until the end of the block, which begins when it is ready."""
    with tempfile.TemporaryFile() as log:
        running = await asyncio.create_subprocess_exec(
            *map(str, command), cwd=folder, env=variables, stdout=log, stderr=log
        )
        try:
            async with httpx2.AsyncClient(trust_env=False) as http:

                async def ready() -> bool:
                    log.seek(0)
                    if running.returncode is not None:
                        raise RuntimeError(log.read().decode()[-2000:])
                    try:
                        answer = await http.get(f"{url}/readyz")
                    except httpx2.TransportError:
                        return False
                    return answer.status_code != httpx2.codes.SERVICE_UNAVAILABLE

                await eventually(f"{url} to serve", ready)
            yield running.pid
        finally:
            if running.returncode is None:
                running.terminate()
            await running.wait()


async def start(
    stack: AsyncExitStack, alpha: AlphaDouble, name: str, language: str, typescript: TypeScript
) -> tuple[int, int, Identity]:
    """Start a greeter or a caller; return its process id, its port, and its identity."""
    identity, port = await alpha.identity(f"{name}-{language}"), free_port()
    if language == "typescript":
        command, folder = typescript.program("greeter" if name == "greeter" else "rpc"), ROOT
    elif name == "greeter":
        command, folder = [sys.executable, "-m", "main"], ROOT / "examples" / "replicas" / "greeter"
    else:
        command, folder = [sys.executable, str(HERE / "rpc_caller.py")], ROOT
    url = f"http://127.0.0.1:{port}"
    variables = environment(identity, port) | {"RESIDE_INTERNAL_ENDPOINT": url, "PYTHONPATH": str(ROOT)}
    return await stack.enter_async_context(process(command, variables, url, folder)), port, identity


async def bare(stack: AsyncExitStack, language: str) -> Server:
    """Start a bare server."""
    port = free_port()
    program = (
        [node_binary(), HERE / "rpc_bare.mjs"] if language == "typescript" else [sys.executable, HERE / "rpc_bare.py"]
    )
    url = f"http://127.0.0.1:{port}"
    pid = await stack.enter_async_context(process([*program, str(port)], dict(os.environ), url, ROOT))
    return Server(pid, f"{url}/greet")


async def between(caller: Caller, server: Server, seconds: float) -> Result:
    """Measure one caller and one server."""
    await caller.run(server.target, TASKS, WARM_UP_S)
    before = cpu_s(caller.pid), cpu_s(server.pid)
    full = await caller.run(server.target, TASKS, seconds)
    used = cpu_s(caller.pid) - before[0], cpu_s(server.pid) - before[1]
    alone = (await caller.run(server.target, 1, seconds))["times"]
    count = len(full["times"])
    p50, p95 = (alone[int(len(alone) * part)] for part in (0.5, 0.95))
    return Result(count / full["seconds"], p50, p95, *(1000 * each / count for each in used))


async def measure(seconds: int) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder, run_servers() as servers:
        typescript = TypeScript(Path(folder))
        typescript.install()
        program = Path(typescript.program("rpc")[-1])
        program.parent.mkdir()
        shutil.copy(HERE / "rpc_caller.ts", program)
        async with AsyncExitStack() as stack:
            alpha = await stack.enter_async_context(run_alpha_double(servers))
            http = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False))
            client = await alpha.account("client")
            greeters, callers, bares = {}, {}, {}
            for language in LANGUAGES:
                pid, port, identity = await start(stack, alpha, "greeter", language, typescript)
                greeters[language] = (Server(pid, identity.settings.replica_name), identity)
                pid, port, identity = await start(stack, alpha, "caller", language, typescript)
                callers[language] = Caller(pid, identity, port, client, http)
                bares[language] = await bare(stack, language)
            await connect(alpha, [each.identity for each in callers.values()], [each for _, each in greeters.values()])
            print(f"{'':36}{'calls/s':>8}{'of bare':>9}{'p50 ms':>8}{'p95 ms':>8}{'more':>7}{'CPU ms/call':>13}")
            for caller in LANGUAGES:
                for callee in LANGUAGES:
                    plain = await between(callers[caller], bares[callee], seconds)
                    found = await between(callers[caller], greeters[callee][0], seconds)
                    show(f"{caller} → bare {callee}", plain, plain)
                    show(f"{caller} → {callee}", found, plain)
            for language in LANGUAGES:
                print(f"memory of the greeter in {language}: {memory_mib(greeters[language][0].pid):.0f} MiB")


async def connect(alpha: AlphaDouble, callers: Sequence[Identity], greeters: Sequence[Identity]) -> None:
    """Name the greeters in the callers' control blocks, and grant the permission."""
    granted = Grant(granted=True)
    for caller in callers:
        caller.rcb.set_requirements({"greeting": [greeter.credentials.account_id for greeter in greeters]})
        for greeter in greeters:
            ref = PermissionRef(caller.credentials.account_id, GREETING, "greet")
            await alpha.expect(greeter, ref, granted)
            await alpha.until_current(greeter, ref, granted)


def show(name: str, found: Result, plain: Result) -> None:
    """Print a line; CPU is that of caller and server."""
    more = found.p95 - plain.p95
    cpu = f"{found.caller_cpu:.2f} {found.server_cpu:.2f}"
    part = f"{found.rate / plain.rate:.0%}"
    print(f"{name:36}{found.rate:8.0f}{part:>9}{found.p50:8.2f}{found.p95:8.2f}{more:7.2f}{cpu:>13}", flush=True)


if __name__ == "__main__":
    run(measure, __doc__, seconds=5)
