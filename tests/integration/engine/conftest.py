"""Every test of the stack engine runs with both command runners."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from integration.engine.running import ENGINES, Bench, new_bench

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from reside.local import ClusterInfo


@pytest.fixture(params=ENGINES)
async def bench(cluster: ClusterInfo, tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    """Yield an engine on a namespace of its own."""
    async with new_bench(cluster, tmp_path, engine=request.param) as found:
        yield found
