"""A stack that ends Pulumi's provider ends no operation of another stack more than once, and is named as the cause."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import Bench, actions, new_bench, session, stack
from support.eventually import eventually
from support.sentinel import config_map

from reside.sentinel.engine import ApplyEndsProvider, ApplyRejected, ProviderEnded

if TYPE_CHECKING:
    from pathlib import Path

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
DEADLY = {**config_map("deadly"), "data": {"x": [None, "a"]}}
"""What ends the provider, if it is not refused before: a list of which only the first element is null."""


def providers(bench: Bench) -> set[int]:
    """Return the processes of providers of the resident engine."""
    runner: Any = bench.engine._runner
    found = session(runner._engine._process.pid)
    return {pid for pid, name in found.items() if name.startswith("pulumi-resource")}


async def test_a_stack_that_ends_the_provider_does_it_alone_from_then_on(cluster: ClusterInfo, tmp_path: Path) -> None:
    async with new_bench(cluster, tmp_path, engine="resident") as bench:
        with pytest.raises(ProviderEnded) as ended:
            await bench.engine.apply(stack(DEADLY, name="deadly"))
        assert ended.value.object == "ConfigMap/deadly"
        await bench.engine.apply(stack(config_map("good", x="1"), name="good"))
        kept = await eventually("the kept provider", lambda: providers(bench), lambda found: len(found) == 1)

        good = asyncio.create_task(bench.engine.apply(stack(config_map("good", x="2"), name="good")))
        with pytest.raises(ApplyEndsProvider, match="no other stack can be the cause") as alone:
            await bench.engine.apply(stack(DEADLY, name="deadly"))
        assert alone.value.object == "ConfigMap/deadly"
        assert not alone.value.transient
        assert actions(await good) == {"ConfigMap/good": "update"}
        await eventually("the kept provider alone", lambda: providers(bench), lambda found: found == kept)

        done = await bench.engine.apply(stack(config_map("deadly", x="1"), name="deadly"))
        assert actions(done) == {"ConfigMap/deadly": "create"}
        done = await bench.engine.apply(stack(config_map("deadly", x="2"), name="deadly"))
        assert actions(done) == {"ConfigMap/deadly": "update"}
        await eventually("the kept provider alone", lambda: providers(bench), lambda found: found == kept)


async def test_a_suspect_that_is_refused_is_none_any_more(cluster: ClusterInfo, tmp_path: Path) -> None:
    async with new_bench(cluster, tmp_path, engine="resident") as bench:
        with pytest.raises(ProviderEnded):
            await bench.engine.apply(stack(DEADLY))
        for _ in range(2):
            with pytest.raises(ApplyRejected, match="expected string"):
                await bench.engine.apply(stack({**config_map("deadly"), "data": {"x": ["a"]}}))
        with pytest.raises(ProviderEnded):
            await bench.engine.apply(stack(DEADLY))
