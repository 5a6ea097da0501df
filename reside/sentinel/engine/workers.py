"""Worker processes as seen by their owner: started when needed, kept warm, ended with everything that they started.

Importing pulumi takes half a second, so a worker serves many operations. It runs in a session of its own, with its
engine and that one's plugins: when a worker or engine dies in the middle, or an operation is cancelled, the whole
session is killed, because a provider that outlives its engine would go on writing to the cluster.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from reside.sentinel.engine.errors import EngineError, EngineKilled, from_details
from reside.sentinel.engine.port import OnEvent, StackEvent
from reside.sentinel.engine.session import kill_session

if TYPE_CHECKING:
    from reside.sentinel.engine.settings import EngineSettings

_EXCEPTION = re.compile(rb"[A-Za-z_.]+(Error|Exception|Exit|Interrupt)\b")
_LONGEST_LINE = 64 * 1024 * 1024
_PACKAGE_ROOT = Path(__file__).resolve().parents[3]


@dataclass
class WorkerProcess:
    """One running worker; serves one request at a time."""

    process: asyncio.subprocess.Process
    served: int = 0
    _last_words: deque[bytes] = field(default_factory=lambda: deque(maxlen=1))
    _listener: asyncio.Task[None] | None = None

    @staticmethod
    async def start(settings: EngineSettings) -> WorkerProcess:
        """Start a worker; it is ready for requests at once, and imports pulumi before the first."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "reside.sentinel.engine.worker",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(),
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        worker = WorkerProcess(process)
        worker._listener = asyncio.create_task(worker._listen())
        await worker._send(settings.document())
        return worker

    async def call(self, request: dict[str, Any], on_event: OnEvent | None) -> dict[str, Any]:
        """Have one request served.

        Raises:
            EngineError: what the operation failed with; :class:`EngineKilled` if the worker or its engine died.
        """
        self.served += 1
        try:
            answer = await self._exchange(request, on_event)
        except EngineError:
            raise
        except BaseException:
            await self.kill()  # cancelled, or an answer that is none: it must not be taken for the next request's
            raise
        if "error" in answer:
            error = from_details(answer["error"])
            if isinstance(error, EngineKilled):
                await self.kill()
            raise error
        result: dict[str, Any] = answer["result"]
        return result

    async def _exchange(self, request: dict[str, Any], on_event: OnEvent | None) -> dict[str, Any]:
        """Send a request, tell its events, and return the line that ends it."""
        await self._send(request)
        while "event" in (answer := await self._receive()):
            if on_event is not None:
                on_event(StackEvent(**answer["event"]))
        return answer

    @property
    def _stdin(self) -> asyncio.StreamWriter:
        return cast("asyncio.StreamWriter", self.process.stdin)  # a pipe, as start() asked for

    @property
    def _stdout(self) -> asyncio.StreamReader:
        return cast("asyncio.StreamReader", self.process.stdout)  # a pipe, as start() asked for

    @property
    def alive(self) -> bool:
        """Whether the process runs and takes requests."""
        return self.process.returncode is None and not self._stdin.is_closing()

    def terminate(self) -> None:
        """Ask for a graceful end; the engine gets exactly one signal, however often this is called."""
        with suppress(ProcessLookupError):
            self.process.terminate()

    async def close(self, grace: float) -> None:
        """Let an idle or terminated worker end; after ``grace`` seconds it is killed."""
        self._stdin.close()
        try:
            async with asyncio.timeout(grace):
                await self.process.wait()
        except TimeoutError:
            await self.kill()

    async def kill(self) -> None:
        """End the worker and everything in its session, now."""
        await asyncio.shield(asyncio.ensure_future(self._kill()))

    async def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()  # first, or it would see its engine die and start to clean up
        await kill_session(self.process.pid)
        await self.process.wait()

    async def _send(self, message: dict[str, Any]) -> None:
        try:
            self._stdin.write(json.dumps(message).encode() + b"\n")
            await self._stdin.drain()
        except (ConnectionError, RuntimeError) as error:
            await self._died(error)

    async def _receive(self) -> dict[str, Any]:
        line = await self._stdout.readline()
        if not line.endswith(b"\n"):
            await self._died(None)
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _died(self, cause: Exception | None) -> None:
        await self.kill()
        if self._listener is not None:
            await self._listener
        code = self.process.returncode
        message = f"the engine's worker ended with code {code}{self._reason()}; the next operation repairs the stack"
        raise EngineKilled(message) from cause

    async def _listen(self) -> None:
        """Read the worker's standard error, so that it never blocks, and keep the last line."""
        stderr = cast("asyncio.StreamReader", self.process.stderr)  # a pipe, as start() asked for
        async for line in stderr:
            self._last_words.append(line)

    def _reason(self) -> str:
        """The type of the exception that ended the worker; the rest of its words may quote values."""
        found = _EXCEPTION.match(b"".join(self._last_words))
        return f" ({found[0].decode()})" if found else ""


def _environment() -> dict[str, str]:
    """Our environment, with this package importable and gRPC's fork handlers off (nothing forks without an exec)."""
    paths = [str(_PACKAGE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "GRPC_ENABLE_FORK_SUPPORT": "false",
        "GRPC_VERBOSITY": "NONE",
    }
