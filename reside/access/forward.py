"""A port-forward into a cluster, by `kubectl port-forward` in a process of our own.

kubectl chooses a free port of the loopback once; when it ends (a pod went away, the API server restarted) it is
started again on the same port, after a pause that grows up to a bound, for as long as the forward is open.
So the address stays good, and what is lost is only the connections of that moment.
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
        KubectlMissingError: It is not on PATH.
    """
    found = shutil.which("kubectl")
    if found is None:
        raise KubectlMissingError
    return Path(found)


class PortForward:
    """An open way from a port of the loopback to a pod or Service; use it with `async with`.

    Args:
        kubeconfig: Credentials and server; kubectl's own default if None.
        context: Which of the kubeconfig's contexts; the current one if None.
        namespace: Where the target is.
        target: As kubectl names it: `svc/alpha`, `pod/etcd-0`.
        port: The target's port.
        kubectl: The binary; found on PATH if None.
        ready_seconds: How long the forward may take to come up the first time.

    Raises:
        PortForwardError: On entering: it did not come up in time. The message has what kubectl said.
        KubectlMissingError: On entering: there is no kubectl.

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
        self._said: deque[str] = deque(maxlen=5)
        self._ready = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"PortForward({self._target!r}, {self._remote_port}, local_port={self._local_port})"

    @property
    def port(self) -> int:
        """The port of the loopback; 0 before the forward is up."""
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
        """Wait until the forward is up; at once if it is.

        Raises:
            OSError: it can't come up any more, as kubectl can't be executed.
        """
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait({ready, *filter(None, [self._keeper])}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._keeper is not None and self._keeper.done():
            self._keeper.result()

    async def __aenter__(self) -> Self:
        kubectl = self._kubectl or find_kubectl()
        self._keeper = asyncio.create_task(self._keep(kubectl), name=repr(self))
        try:
            await self._wait_first(self._keeper)
        except BaseException:
            await self._close()
            raise
        return self

    async def _wait_first(self, keeper: asyncio.Task[None]) -> None:
        """Wait until the forward is up for the first time, or the keeper fails, or the time is over."""
        ready = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait({keeper, ready}, timeout=self._ready_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if keeper.done():
            keeper.result()  # raises what went wrong, such as a kubectl that can't be executed
        if not self._ready.is_set():
            reason = " / ".join(self._said) or "kubectl said nothing"
            raise PortForwardError(self._target, f"not up after {self._ready_seconds:g} s ({reason})")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
            if not self._keeper.cancelled():
                self._keeper.result()  # it ended by itself: say why

    async def _keep(self, kubectl: Path) -> None:
        """Run kubectl again and again until cancelled."""
        retries = Retries()
        while True:
            if await self._run_once(kubectl):
                retries.succeeded()
            await asyncio.sleep(retries.failed())  # the back-off itself, not a wait for a state

    async def _run_once(self, kubectl: Path) -> bool:
        """Run kubectl to its end; tell whether the forward was up in between."""
        ports = f"{self._local_port or ''}:{self._remote_port}"
        arguments = [*self._options, "port-forward", "--address", "127.0.0.1", self._target, ports]
        process = await asyncio.create_subprocess_exec(
            *_die_with_parent(), str(kubectl), *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=STDOUT
        )
        try:
            return await self._listen(process)
        finally:
            self._ready.clear()
            await _end(process)

    async def _listen(self, process: Process) -> bool:
        """Read all that kubectl prints, which also keeps it from blocking."""
        assert process.stdout is not None  # noqa: S101 - stdout=PIPE
        was_up = False
        async for line in process.stdout:
            text = line.decode(errors="replace").strip()
            match = _FORWARDING.match(text)
            if match:
                self._local_port = int(match[1])
                self._ready.set()
                was_up = True
            elif not text.startswith("Handling connection"):
                self._said.append(text)
        return was_up


def _die_with_parent() -> list[str]:
    """Return what makes a command end with this process, should it be killed; nothing where the tool is missing."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


async def _end(process: Process) -> None:
    """End exactly this process: SIGTERM, then SIGKILL after a deadline."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(TERM_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
