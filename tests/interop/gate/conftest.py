"""A sync server in members mode, with a short time for content that waits for other values."""

from collections.abc import Iterator

import httpx2
import pytest
from support.jazz_server import JazzServer, jazz_server


@pytest.fixture(scope="package")
def jazz() -> Iterator[JazzServer]:
    """Yield a running sync server in members mode; the other fixtures of this folder use it, too."""
    with jazz_server(MODE="members", HOLD_S="2") as server:
        yield server


def metrics(server: JazzServer) -> dict[str, float]:
    """Return the values of the server's metrics, by name and label."""
    text = httpx2.get(f"http://127.0.0.1:{server.port}/metrics", trust_env=False).text
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}
