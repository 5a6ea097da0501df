"""Port-forward into a cluster, by a child process `kubectl port-forward`.

kubectl chooses a free loopback port once. When kubectl exits (a pod was deleted, the API server restarted), it is
restarted on the same port with back-off, as long as the forward is open. So the address stays valid, and only the
connections of that moment are lost.
"""

import asyncio
import re
import shutil
from asyncio.subprocess import PIPE, STDOUT, Process
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from reside.access.errors import KubectlMissingError, PortForwardError
from reside.common.backoff import Retries

READY_SECONDS = 30.0
TERM_SECONDS = 5.0
_FORWARDING = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+) ->")


def find_kubectl() -> Path:
    """Return kubectl's path.

    Raises:
        KubectlMissingError: kubectl is not on PATH.
    """
    found = shutil.which("kubectl")
    if found is None:
        raise KubectlMissingError
    return Path(found)


class PortForward:
    """Forward a loopback port to a pod or Service, inside of `async with`.

    Args:
        kubeconfig: path of the kubeconfig; None: kubectl's default.
        context: context of the kubeconfig; None: the current one.
        namespace: namespace of the target.
        target: the target as kubectl names it: `svc/alpha`, `pod/etcd-0`.
        port: port of the target.
        kubectl: path of the binary; None: found on PATH.
        ready_seconds: deadline for the forward to become ready the first time.

    Raises:
        PortForwardError: on entering: the forward was not ready in time; the message contains kubectl's output.
        KubectlMissingError: on entering: kubectl is not on PATH.

    >>> async def use() -> None:
    ...     async with PortForward(None, None, "reside", "svc/alpha", 80) as forward:
    ...         print(forward.url)
    """

    def __init__(
        self,
        kubeconfig: Path | None,
        context: str | None,
        namespace: str,
        target: str,
        port: int,
        *,
        kubectl: Path | None = None,
        ready_seconds: float = READY_SECONDS,
    ) -> None:
        self._options = [
            *(["--kubeconfig", str(kubeconfig)] if kubeconfig else []),
            *(["--context", context] if context else []),
            "--namespace",
            namespace,
        ]
        self._target = target
        self._remote_port = port
        self._kubectl = kubectl
        self._ready_seconds = ready_seconds
        self._local_port = 0
        self._output: deque[str] = deque(maxlen=5)
        self._ready = asyncio.Event()
        self._supervisor: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"PortForward({self._target!r}, {self._remote_port}, local_port={self._local_port})"

    @property
    def port(self) -> int:
        """The loopback port; 0 before the forward is ready."""
        return self._local_port

    @property
    def address(self) -> str:
        """`host:port` on the loopback."""
        return f"127.0.0.1:{self._local_port}"

    @property
    def url(self) -> str:
        """The loopback address as an http URL, without a slash at the end."""
        return f"http://{self.address}"

    async def ready(self) -> None:
        """Wait until the forward is ready.

        Raises:
            OSError: kubectl can't be executed, so the forward will not become ready.
        """
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait({ready, *filter(None, [self._supervisor])}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._supervisor is not None and self._supervisor.done():
            self._supervisor.result()

    async def __aenter__(self) -> Self:
        kubectl = self._kubectl or find_kubectl()
        self._supervisor = asyncio.create_task(self._keep(kubectl), name=repr(self))
        try:
            await self._wait_first(self._supervisor)
        except BaseException:
            await self._close()
            raise
        return self

    async def _wait_first(self, supervisor: asyncio.Task[None]) -> None:
        """Wait until the forward is ready for the first time, the supervisor task fails, or the deadline passes."""
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait({supervisor, ready}, timeout=self._ready_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if supervisor.done():
            supervisor.result()  # raises its error, for example that kubectl can't be executed
        if not self._ready.is_set():
            reason = " / ".join(self._output) or "kubectl printed nothing"
            raise PortForwardError(self._target, f"not ready after {self._ready_seconds:g} s ({reason})")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        if self._supervisor is not None:
            self._supervisor.cancel()
            await asyncio.wait({self._supervisor})
            if not self._supervisor.cancelled():
                self._supervisor.result()  # it ended with an error: raise it

    async def _keep(self, kubectl: Path) -> None:
        """Run kubectl, and restart it when it exits, until cancelled."""
        retries = Retries()
        while True:
            if await self._run_once(kubectl):
                retries.succeeded()
            await asyncio.sleep(retries.failed())  # the back-off itself, not a wait for a state

    async def _run_once(self, kubectl: Path) -> bool:
        """Run kubectl until it exits; return whether the forward became ready before."""
        ports = f"{self._local_port or ''}:{self._remote_port}"
        arguments = [*self._options, "port-forward", "--address", "127.0.0.1", self._target, ports]
        process = await asyncio.create_subprocess_exec(
            *die_with_parent(), str(kubectl), *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=STDOUT
        )
        try:
            return await self._read_output(process)
        finally:
            self._ready.clear()
            await _end(process)

    async def _read_output(self, process: Process) -> bool:
        """Read all output of kubectl, also so that it never blocks; return whether the forward was ready."""
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE
        was_ready = False
        async for line in process.stdout:
            text = line.decode(errors="replace").strip()
            match = _FORWARDING.match(text)
            if match:
                self._local_port = int(match[1])
                self._ready.set()
                was_ready = True
            elif not text.startswith("Handling connection"):
                self._output.append(text)
        return was_ready


def die_with_parent() -> list[str]:
    """Return a command prefix that ends the command when this process is killed; empty if setpriv is missing."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


async def _end(process: Process) -> None:
    """Terminate this process: SIGTERM, then SIGKILL after a deadline."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(TERM_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
