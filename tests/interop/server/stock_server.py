"""The stock sync server, `jazz-run` 0.15.10, which users of Jazz's own documentation run.

It stores everything in memory. A preload script binds it to loopback.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.eventually import eventually_sync
from support.jazz_server import install_packages, node_binary

if TYPE_CHECKING:
    from collections.abc import Iterator

_SOURCE = Path(__file__).parent / "stock"
_READY_WITHIN_S = 60.0


@dataclass(frozen=True)
class StockServer:
    """A running stock server.

    Attributes:
        port: port on 127.0.0.1.
    """

    port: int

    @property
    def url(self) -> str:
        """WebSocket address for clients."""
        return f"ws://127.0.0.1:{self.port}"


@contextmanager
def stock_server() -> Iterator[StockServer]:
    """Yield a running stock server of its own."""
    script = install_packages(_SOURCE) / "node_modules" / "jazz-run" / "dist" / "index.js"
    command = [node_binary(), "--require", _SOURCE / "loopback.cjs", script, "sync", "--in-memory"]
    with tempfile.TemporaryDirectory(prefix="reside-jazz-stock-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        try:
            yield StockServer(_port(process, log))
        finally:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    def listening() -> int | None:
        text = log.read_text()
        for line in text.splitlines(keepends=True):
            if line.startswith('{"port":') and line.endswith("\n"):
                return int(json.loads(line)["port"])
        assert process.poll() is None, f"the stock Jazz server ended: {text[-2000:]}"
        return None

    port = eventually_sync("the port of the stock Jazz server", listening, within=_READY_WITHIN_S)
    assert port is not None
    return port
