"""An apply does not ask Pulumi's provider again what the same process has answered for its preview."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import Bench, actions, new_bench, secret, stack
from support.sentinel import config_map, service, workload

if TYPE_CHECKING:
    from pathlib import Path

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


def answered(bench: Bench) -> int:
    """Return the number of calls that the engine has answered instead of its providers."""
    runner: Any = bench.engine._runner
    return sum(provider["answered"] for provider in runner._engine.status()["providers"])


async def test_unchanged_objects_are_not_checked_again(cluster: ClusterInfo, tmp_path: Path) -> None:
    """The results are those of the provider, for another value, a removed object and a drifted state, too."""
    others = (secret("s", key="value"), service("web"), workload("Deployment", "web", replicas=0))
    async with new_bench(cluster, tmp_path, engine="resident") as bench:
        await bench.engine.apply(stack(config_map("a", x="1"), *others))
        for number, value in enumerate(("2", "3", "2")):
            wanted = stack(config_map("a", x=value), *others)
            before = answered(bench)
            previewed = await bench.engine.preview(wanted)
            asked = answered(bench)
            applied = await bench.engine.apply(wanted)
            assert actions(previewed) == actions(applied)
            assert {key for key, action in actions(applied).items() if action == "update"} == {"ConfigMap/a"}
            assert answered(bench) - asked >= 2 * len(others), "the apply after a preview checks what is unchanged"
            assert number == 0 or asked - before >= 2 * len(others), "a further change checks what is unchanged"
            live = bench.live("ConfigMap/a")
            assert live is not None
            assert live["data"] == {"x": value}
        assert actions(await bench.engine.apply(stack(config_map("a", x="2"), *others[1:])))["Secret/s"] == "delete"
