"""A real etcd with one member on loopback that tests start, kill, freeze and restart with the same data."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2
from support.eventually import eventually_sync
from support.ports import free_port

from reside.alpha.lock_access import root_user
from reside.common.tls import trusted_authorities
from reside.locks.etcd import Etcd, encode
from reside.locks.gateway import NOT_ENABLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.jazz import Credentials
    from reside.locks import EtcdUser

_READY_WITHIN_S = 120.0


class EtcdServer:
    """One etcd process.

    Args:
        folder: folder of its data and its log.
        options: further options of the command.

    Attributes:
        url: its client address.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        binary = shutil.which("etcd")
        if binary is None:
            raise RuntimeError("no etcd on PATH: build the toolchain (tools/), it holds etcd")
        self._binary = binary
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        client, peer = free_port(), free_port()
        self.url = f"http://127.0.0.1:{client}"
        self._peer = f"http://127.0.0.1:{peer}"

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None, "etcd does not run"
        return self._process.pid

    def start(self) -> None:
        """Start the process and wait until it reports that it is healthy."""
        arguments = [
            *("--name", "test", "--data-dir", str(self._folder / "data"), "--log-level", "error"),
            *("--listen-client-urls", self.url, "--advertise-client-urls", self.url),
            *("--listen-peer-urls", self._peer, "--initial-advertise-peer-urls", self._peer),
            *("--initial-cluster", f"test={self._peer}", "--unsafe-no-fsync"),
            *("--bcrypt-cost", "4"),  # as in the cluster: a login at the default cost takes a tenth of a second
            *self._options,
        ]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen([self._binary, *arguments], stdout=log, stderr=log)
        eventually_sync("health of etcd", self._health, lambda seen: seen == "200", within=_READY_WITHIN_S, show=str)

    def _health(self) -> str:
        """Return the status code of the health page, or why there is none."""
        assert self._process is not None
        ended = self._process.poll() is not None
        assert not ended, f"etcd ended: {(self._folder / 'log').read_text()[-2000:]}"
        try:
            return str(httpx2.get(f"{self.url}/health", verify=trusted_authorities(), trust_env=False).status_code)
        except httpx2.TransportError as error:
            return str(error)

    def kill(self) -> None:
        """Kill the process (SIGKILL); its data remains."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def lose_data(self) -> None:
        """Kill the process and start it on an empty folder."""
        self.kill()
        shutil.rmtree(self._folder / "data")
        self.start()

    def freeze(self) -> None:
        """Stop the process (SIGSTOP), so that it does not respond but its connections stay open."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Continue a frozen process (SIGCONT)."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def etcd_server() -> Iterator[EtcdServer]:
    """Run etcd while the block is open; then remove it with its data."""
    folder = Path(tempfile.mkdtemp(prefix="reside-etcd-"))
    server = EtcdServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


async def forget_users(server: EtcdServer, alpha: Credentials) -> None:
    """Make etcd as it was before an Alpha used it, so that another Alpha can use it."""

    async def root() -> EtcdUser:
        return root_user(alpha)

    client = Etcd([server.url], root)
    try:
        for path, body in (
            ("/v3/kv/deleterange", {"key": encode("\0"), "range_end": encode("\0")}),
            ("/v3/auth/disable", {}),
        ):
            await client.gateway.post(path, body, accept=[NOT_ENABLED])
    finally:
        await client.aclose()
