"""Pulumi's provider is asked about what changes, and not about the other objects of a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import Bench, actions, new_bench, secret, stack
from support.sentinel import config_map, service, workload

if TYPE_CHECKING:
    from pathlib import Path

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


def asked(bench: Bench) -> int:
    """Return the number of calls that the processes of providers have got."""
    runner: Any = bench.engine._runner
    return sum(provider["asked"] for provider in runner._engine.status()["providers"])


async def test_unchanged_objects_are_not_checked_again(cluster: ClusterInfo, tmp_path: Path) -> None:
    """The results are those of the provider, for another value, a removed object and a drifted state, too."""
    others = (secret("s", key="value"), service("web"), workload("Deployment", "web", replicas=0))
    async with new_bench(cluster, tmp_path, engine="resident") as bench:
        await bench.engine.apply(stack(config_map("a", x="1"), name="single"))
        await bench.engine.apply(stack(config_map("b", x="1"), *others))
        for value in ("2", "3", "2"):
            counts = []
            for wanted, changed in (
                (stack(config_map("a", x=value), name="single"), "ConfigMap/a"),
                (stack(config_map("b", x=value), *others), "ConfigMap/b"),
            ):
                before = asked(bench)
                previewed = await bench.engine.preview(wanted)
                applied = await bench.engine.apply(wanted)
                counts.append(asked(bench) - before)
                assert actions(previewed) == actions(applied)
                assert {key for key, action in actions(applied).items() if action == "update"} == {changed}
                live = bench.live(changed)
                assert live is not None
                assert live["data"] == {"x": value}
            assert counts[0] == counts[1], "the other objects are not asked for"
        assert actions(await bench.engine.apply(stack(config_map("b", x="2"), *others[1:])))["Secret/s"] == "delete"
