"""Run a program in a pod, by a child process `kubectl exec`: it needs nothing but the API server's address.

Input and output are bytes of any length. The program ends with the connection if it reads its input.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from reside.access.forward import die_with_parent
from reside.local import Toolchain
from reside.model.errors import NotReady

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncIterator, Iterable, Sequence

    from reside.access.target import Target

CHUNK: Final = 1 << 16
_SHOWN: Final = 500
"""Characters of the program's error output that a message quotes."""


class PodProgram:
    """A program that runs in a pod.

    Args:
        process: kubectl's process.
        what: names the program in messages.
    """

    def __init__(self, process: Process, what: str) -> None:
        self._process = process
        self._what = what
        assert process.stderr is not None  # noqa: S101 - stderr=PIPE
        self._errors = asyncio.ensure_future(process.stderr.read())

    async def read_line(self) -> str:
        """Return the next line of the output.

        Raises:
            NotReady: the program ended without one.
        """
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE
        line = await self._process.stdout.readline()
        if not line:
            await self._end()
            raise NotReady(f"{self._what} printed nothing")
        return line.decode().strip()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the rest of the output.

        Raises:
            NotReady: the program failed, or the connection was lost.
        """
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE
        while chunk := await self._process.stdout.read(CHUNK):
            yield chunk
        await self._end()

    async def send(self, content: bytes) -> None:
        """Write to the program's input.

        Raises:
            NotReady: the program failed, or the connection was lost.
        """
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE
        try:
            self._process.stdin.write(content)
            await self._process.stdin.drain()
        except ConnectionError:
            await self._end()
            raise NotReady(f"{self._what} ended before its input was complete") from None

    async def finish(self, contents: Iterable[bytes]) -> None:
        """Write all of the program's input, and wait for its end.

        Raises:
            NotReady: the program failed, or the connection was lost.
        """
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE
        for content in contents:
            await self.send(content)
        self._process.stdin.close()
        async for _ in self.chunks():
            pass

    async def close(self) -> None:
        """End kubectl, if it still runs."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._errors

    async def _end(self) -> None:
        """Wait for the program's end."""
        code = await self._process.wait()
        if code != 0:
            text = " ".join((await self._errors).decode(errors="replace").split())[-_SHOWN:]
            raise NotReady(f"{self._what} failed: {text or f'kubectl ended with {code}'}")


@asynccontextmanager
async def running(target: Target, pod: str, command: Sequence[str], what: str) -> AsyncIterator[PodProgram]:
    """Run a program in a pod while the block is open.

    Args:
        target: the cluster.
        pod: name of the pod.
        command: program and arguments.
        what: names the program in messages.
    """
    options = [
        *(["--kubeconfig", target.kubeconfig] if target.kubeconfig else []),
        *(["--context", target.kube_context] if target.kube_context else []),
        "--namespace",
        target.namespace,
    ]
    kubectl = str(Toolchain.default().find("kubectl"))
    arguments = [*die_with_parent(), kubectl, *options, "exec", "--stdin", pod, "--", *command]
    process = await asyncio.create_subprocess_exec(*arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE)
    program = PodProgram(process, what)
    try:
        yield program
    finally:
        await program.close()
