"""Every test of the stack engine runs on both adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from integration.engine.running import ENGINES, Bench, bench

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from reside.local import ClusterInfo


@pytest.fixture(params=ENGINES)
async def b(cluster: ClusterInfo, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    """An engine on a fresh namespace."""
    async with bench(cluster, tmp_path, engine=request.param) as found:
        yield found
