"""The official JavaScript packages as a child process, driven by a script of `tests/interop/js`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.jazz_server import interop_packages, node_binary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_SCRIPTS = Path(__file__).parent / "js"
_ANSWER_WITHIN_S = 60.0
_MAX_LINE_BYTES = 64 * 1024 * 1024


class JavaScriptError(Exception):
    """The JavaScript side threw an error."""


class JavaScript:
    """The client of one Node process with the official packages; it may hold several actors.

    Attributes:
        idle: whether every request has its answer.
    """

    def __init__(self, process: subprocess.Popen[bytes], answers: asyncio.StreamReader) -> None:
        self.idle = True
        self._process = process
        self._answers = answers
        self._next = 1

    async def __call__(self, op: str, **args: Any) -> Any:
        """Run one operation of the driver, and return its result.

        Raises:
            JavaScriptError: the operation threw an error.
        """
        number, self._next = self._next, self._next + 1
        assert self._process.stdin is not None
        self.idle = False
        self._process.stdin.write(json.dumps({"id": number, "op": op, "args": args}).encode() + b"\n")
        answer = await self.answer()
        if answer["id"] != number:
            raise JavaScriptError(f"the driver answered {answer['id']} to request {number}")
        self.idle = True
        if "error" in answer:
            raise JavaScriptError(answer["error"])
        return answer["result"]

    async def answer(self) -> Any:
        """Return the next line of the driver."""
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            line = await self._answers.readline()
        if not line:
            raise JavaScriptError(f"the driver ended with {self._process.wait()}")
        return json.loads(line)


class Driver:
    """A script of `tests/interop/js` as a process that several tests use, one after the other.

    It starts with the first test, and again after one that left a request without an answer. After each test its actors
    are shut down. A process for each test would take a fifth of a second of CPU, 160 times.

    Args:
        script: `driver.mjs` drives cojson, `tools.mjs` jazz-tools, `typed.mjs` its schemas.
    """

    def __init__(self, script: str) -> None:
        self._script = script
        self._folder = Path(tempfile.mkdtemp(prefix="reside-jazz-js-"))
        for source in _SCRIPTS.glob("*.mjs"):
            shutil.copy(source, self._folder / source.name)
        (self._folder / "node_modules").symlink_to(interop_packages() / "node_modules")
        self._process: subprocess.Popen[bytes] | None = None

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[JavaScript]:
        """Yield the client to one test, without actors."""
        async with self.opened() as client:
            yield client
            if client.idle:
                await client("forget")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[JavaScript]:
        """Yield the client, and leave its actors as they are."""
        process = self._process
        is_new = process is None or process.poll() is not None
        if process is None or is_new:
            process = self._start()
        async with _answers(process) as answers:
            client = JavaScript(process, answers)
            try:
                if is_new:
                    await client.answer()
                yield client
            finally:
                if not client.idle:
                    self._kill()

    def close(self) -> None:
        """Kill the process, and remove its folder."""
        self._kill()
        shutil.rmtree(self._folder)

    def _start(self) -> subprocess.Popen[bytes]:
        command = [node_binary(), self._script]
        self._process = subprocess.Popen(
            command, cwd=self._folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        return self._process

    def _kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@asynccontextmanager
async def _answers(process: subprocess.Popen[bytes]) -> AsyncIterator[asyncio.StreamReader]:
    """Yield a reader of a process's output in this event loop; at its end the output remains open for another one."""
    assert process.stdout is not None
    reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
    pipe = os.fdopen(os.dup(process.stdout.fileno()), "rb", buffering=0)
    connecting = asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    transport, _ = await connecting
    try:
        yield reader
    finally:
        transport.close()


@asynccontextmanager
async def javascript(script: str = "driver.mjs") -> AsyncIterator[JavaScript]:
    """Yield the client of a process that no other test uses.

    Args:
        script: see `Driver`.
    """
    with closing(Driver(script)) as driver:
        async with driver.opened() as client:
            yield client
