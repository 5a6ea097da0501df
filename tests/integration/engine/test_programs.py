"""A declaration has the same effect as the same program on Pulumi's SDK."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from integration.engine.running import ENGINES, Bench, new_bench, secret, stack
from pulumi.automation import LocalWorkspace, Stack, UpResult
from support.sentinel import config_map, service, workload

from benchmarks.sdk_program import sdk_program
from reside.model.constants import PROVIDER_VERSION
from reside.sentinel.engine.home import environment
from reside.sentinel.engine.resources import ProviderSettings

if TYPE_CHECKING:
    from pathlib import Path

    from reside.local import ClusterInfo
    from reside.sentinel.engine import StackSpec

pytestmark = pytest.mark.anyio
OWN = ("created", "modified", "sourcePosition", "stackTrace")
"""Members of a resource in the state that depend on when and where it was declared."""


def up_with_the_sdk(bench: Bench, spec: StackSpec) -> UpResult:
    """Run `up` of the same stack by the stock Automation API."""
    program = sdk_program(spec.objects, ProviderSettings(PROVIDER_VERSION, bench.namespace, bench.settings.context))
    workspace = LocalWorkspace(
        str(bench.settings.workspace(spec.name)), program=program, env_vars=environment(bench.settings)
    )
    return Stack.select(spec.name, workspace).up()


def resources(bench: Bench) -> list[dict[str, Any]]:
    state = bench.export("demo")
    found = [{key: value for key, value in r.items() if key not in OWN} for r in state["deployment"]["resources"]]
    return sorted((_plain(resource) for resource in found), key=lambda resource: resource["urn"])


def _plain(value: Any) -> Any:
    """Return the value without cipher texts, since each encryption differs, and with URNs in one order."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items() if key != "ciphertext"}
    if isinstance(value, list):
        plain = [_plain(inner) for inner in value]
        return sorted(plain) if all(isinstance(inner, str) for inner in plain) else plain
    return value


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_sdk_finds_nothing_to_change_and_leaves_the_same_state(
    cluster: ClusterInfo, tmp_path: Path, engine: str
) -> None:
    """The resident engine registers the resources itself; for the command line, the Sentinel does so by RPC."""
    objects = (
        config_map("a", x="1"),
        secret("s", key="value"),
        service("web"),
        workload("Deployment", "web", replicas=0),
    )
    async with new_bench(cluster, tmp_path, engine=engine) as bench:
        await bench.engine.apply(stack(*objects))
        before = resources(bench)
        result = await asyncio.to_thread(up_with_the_sdk, bench, stack(*objects))
        assert result.summary.resource_changes == {"same": len(before)}
        assert resources(bench) == before
