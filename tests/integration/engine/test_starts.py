"""An engine that is started before it is needed has its processes, and nothing else."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import Bench, actions, new_bench, stack
from support.sentinel import config_map

from reside.sentinel.engine import EngineUnavailable

if TYPE_CHECKING:
    from pathlib import Path

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


async def test_a_start_leaves_no_stack(bench: Bench) -> None:
    await bench.engine.start()
    assert await bench.engine.stacks() == frozenset()
    assert bench.kubectl("get", "configmaps", "--selector=app.kubernetes.io/managed-by", "--output=name") == ""
    assert actions(await bench.engine.apply(stack(config_map("a", x="1")))) == {"ConfigMap/a": "create"}


async def test_the_provider_of_the_first_operation_runs_before_it(cluster: ClusterInfo, tmp_path: Path) -> None:
    async with new_bench(cluster, tmp_path) as bench:
        await bench.engine.start()
        runner: Any = bench.engine._runner
        (before,) = runner._engine.status()["providers"]
        await bench.engine.apply(stack(config_map("a", x="1")))
        (after,) = runner._engine.status()["providers"]
        assert before["pid"] == after["pid"]


async def test_an_engine_stops_while_it_starts(bench: Bench) -> None:
    starting = asyncio.create_task(bench.engine.start())
    await asyncio.sleep(0)
    await bench.engine.stop()
    with suppress(EngineUnavailable):
        await starting
    with pytest.raises(EngineUnavailable, match="is stopping"):
        await bench.engine.preview(stack(config_map("a", x="1")))
