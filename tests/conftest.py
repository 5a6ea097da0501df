"""What every test shares: the event loop, and the toolchain first on PATH."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_TOOLS = Path(__file__).parent.parent / ".tools" / "bin"
os.environ["PATH"] = f"{_TOOLS}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """All asynchronous tests run on asyncio, as the programs do."""
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of one folder that share a cluster run in one worker (``--dist loadgroup``), one after the other."""
    for item in items:
        if "e2e" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group("e2e"))
