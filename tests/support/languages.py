"""Replicas in both languages as processes, and a proxy that records what their callers send."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio import subprocess
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import httpx2
from support.eventually import eventually
from support.replicas import environment
from support.typescript import ROOT

from reside.model import identities

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.replicas import Identity
    from support.typescript import TypeScript

LANGUAGES = ("python", "typescript")
GREETINGS = {"python": "Hello", "typescript": "Hi"}
_FOLDERS = {"probe": ROOT / "tests" / "integration" / "replica" / "python"}


@dataclass
class Program:
    """A running process and a client of its HTTP server."""

    process: subprocess.Process
    http: httpx2.AsyncClient
    _is_stopping: bool = False

    async def until(self, status: int) -> None:
        """Wait until the readiness has a status."""

        async def look() -> str:
            assert self.process.returncode is None, f"the process has ended with {self.process.returncode}"
            try:
                return str((await self.http.get("/readyz")).status_code)
            except httpx2.TransportError as error:
                return str(error)

        await eventually("readiness", look, lambda seen: seen == str(status), within=90)

    def stop(self) -> None:
        """Stop it as Kubernetes does, without waiting for its end."""
        if self.process.returncode is None and not self._is_stopping:
            self.process.terminate()
        self._is_stopping = True


@asynccontextmanager
async def running(
    typescript: TypeScript,
    language: str,
    name: str,
    identity: Identity,
    port: int,
    *,
    status: int = 200,
    endpoint: str | None = None,
    repository: str | None = None,
) -> AsyncIterator[Program]:
    """Run an example, or a program of the tests, as a process; stop it as Kubernetes does, with exit code 0.

    The block begins when the readiness has this status.

    Args:
        typescript: the installed package.
        language: one of `LANGUAGES`.
        name: name of the program.
        identity: the replica's account and control block.
        port: the port that it listens on.
        status: see above.
        endpoint: the address that its callers get; None: its own.
        repository: the cluster's identity repository; None: that of the names in code.
    """
    folder = _FOLDERS.get(name, ROOT / "examples" / "replicas" / name)
    module = "probe" if name == "probe" else "main"
    command = typescript.program(name) if language == "typescript" else [sys.executable, "-m", module]
    variables = environment(identity, port)
    variables["RESIDE_INTERNAL_ENDPOINT"] = endpoint or f"http://127.0.0.1:{port}"
    variables |= {identities.VARIABLE: repository} if repository else {}
    where = Path.cwd() if language == "typescript" else folder
    process = await subprocess.create_subprocess_exec(*command, cwd=where, env=variables, stdout=subprocess.PIPE)
    http = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False)
    program = Program(process, http)
    try:
        async with http:
            await program.until(status)
            yield program
    finally:
        program.stop()
        out, _ = await process.communicate()
    log = [json.loads(line) for line in out.splitlines()]
    assert process.returncode == 0, log
    assert identity.credentials.agent_secret not in out.decode()


class Recorder:
    """A proxy of TCP connections to one port, which keeps the last request of each caller, by its account.

    Attributes:
        url: its address.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._sent: dict[object, bytearray] = {}
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def replay(self, account: str) -> tuple[int, str]:
        """Send the last call of an account again, as it was; return the status and the text of the answer."""
        sent = next(bytes(each) for each in reversed(self._sent.values()) if account.encode() in each)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(sent[sent.rindex(b"POST /replicas/") :])
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length" in line)
        body = await reader.readexactly(length)
        writer.close()
        return int(head.split()[1]), body.decode()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            out_reader, out_writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(self._pipe(reader, out_writer, keep=True), self._pipe(out_reader, writer, keep=False))

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keep: bool) -> None:
        try:
            while data := await reader.read(1 << 16):
                if keep:
                    self._sent[reader] = self._sent.pop(reader, bytearray()) + data  # the last one is at the end
                writer.write(data)
                await writer.drain()
        except OSError:
            writer.transport.abort()
        writer.close()
