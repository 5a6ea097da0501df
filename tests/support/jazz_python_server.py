"""The Python sync server as a process of its own, `python -m reside.jazz serve`, with the interface of `JazzServer`."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from support.eventually import eventually_sync

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]
_READY_WITHIN_S = 120.0
_STOP_WITHIN_S = 60.0
_LISTENING = "listening on ws://127.0.0.1:"


class PythonJazzServer:
    """One server, which keeps its port and its database when it is stopped or killed and started again.

    Attributes:
        port: port on 127.0.0.1; 0 before the first start.
        folder: folder of the database and the log.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """WebSocket address for clients."""
        return f"ws://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """The server's output so far."""
        return (self.folder / "log").read_text()

    def start(self) -> None:
        """Start the server, and wait until it listens."""
        with (self.folder / "log").open("ab") as log:
            start = log.tell()
            command = [sys.executable, "-m", "reside.jazz", "serve", "--port", str(self.port)]
            command += ["--db", str(self.folder / "jazz.sqlite")]
            process = self._process = subprocess.Popen(command, cwd=_ROOT, stdout=log, stderr=log)

        def address() -> str | None:
            ended = process.poll() is not None
            line = self.log[start:].partition("\n")[0]
            assert not ended, f"the Jazz server ended: {self.log[-2000:]}"
            return line if line.startswith(_LISTENING) else None

        line = eventually_sync("the address of the Jazz server", address, within=_READY_WITHIN_S)
        assert line is not None
        self.port = int(line.removeprefix(_LISTENING))

    def kill(self) -> None:
        """Kill the process (SIGKILL)."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Stop the process with SIGTERM."""
        if self._process is not None:
            self._process.terminate()
            try:
                code = self._process.wait(_STOP_WITHIN_S)
            finally:
                self.kill()
            assert code == 0, f"the Jazz server ended with {code}: {self.log[-2000:]}"


@contextmanager
def python_jazz_server(folder: Path) -> Iterator[PythonJazzServer]:
    """Run a server while the block is open.

    Args:
        folder: folder of its database and log.
    """
    server = PythonJazzServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
