"""The Sentinel without Jazz, without etcd, killed, stopped, and beside another one loses and duplicates nothing."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from integration.sentinel.stage import Stage
from support.declarer import Declarer
from support.eventually import eventually
from support.replicas import Servers, servers
from support.sentinel import config_map, get, kubectl, service, workload

from reside.local import ClusterInfo
from reside.model.constants import PLATFORM_STACK
from reside.sentinel.settings import SentinelSettings

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]


@pytest.fixture
def on() -> Iterator[Servers]:
    """Servers that a test may kill."""
    with servers() as running:
        yield running


async def shell(function: Any, *arguments: Any) -> Any:
    return await asyncio.to_thread(function, *arguments)


async def uid(cluster: ClusterInfo, scene: Stage, key: str) -> str | None:
    found = await shell(get, cluster, scene.namespace, key)
    return found["metadata"]["uid"] if found else None


async def restored(cluster: ClusterInfo, scene: Stage, key: str) -> None:
    """Delete an object, and wait until another one replaces it."""
    before = await uid(cluster, scene, key)
    kind, _, name = key.partition("/")
    await shell(kubectl, cluster, "-n", scene.namespace, "delete", kind, name, "--wait=false")
    await eventually(f"another {key}", lambda: uid(cluster, scene, key), lambda now: now not in (None, before))


@asynccontextmanager
async def process(chosen: SentinelSettings) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield the Sentinel as its pod runs it; what it logs goes to its state folder."""
    values = {
        name: value.get_secret_value() if hasattr(value, "get_secret_value") else value
        for name, value in chosen
        if value is not None
    }
    values["etcd_hosts"] = ",".join(chosen.etcd_hosts)
    environment = {f"RESIDE_{name.upper()}": str(value) for name, value in values.items()}
    log = chosen.state_dir.with_suffix(".log")
    with log.open("ab") as out:
        started = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "reside.sentinel", cwd=ROOT, env={**os.environ, **environment}, stdout=out, stderr=out
        )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()


def platform() -> list[dict[str, Any]]:
    """Return a stack as the hand-over declares it, small."""
    return [workload("StatefulSet", "etcd", PLATFORM_STACK), service("etcd", PLATFORM_STACK)]


async def test_the_platform_is_restored_while_jazz_and_etcd_are_away(
    cluster: ClusterInfo, scene: Stage, on: Servers
) -> None:
    """The leader continues to repair, and follows declared stacks again when both are back."""
    async with scene.running():
        alpha = await scene.alpha()
        await alpha.applied(await alpha.declare(PLATFORM_STACK, *platform()))
        on.jazz.kill()
        on.etcd.kill()
        await restored(cluster, scene, "StatefulSet/etcd")
        await restored(cluster, scene, "Service/etcd")
        on.etcd.start()
        on.jazz.start()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))


async def test_a_sentinel_that_starts_without_jazz_and_etcd_restores_first_and_logs_in_later(
    cluster: ClusterInfo, scene: Stage, on: Servers
) -> None:
    async with scene.running():
        alpha = await scene.alpha()
        await alpha.applied(await alpha.declare(PLATFORM_STACK, *platform()))
    on.jazz.kill()
    on.etcd.kill()
    await shell(kubectl, cluster, "-n", scene.namespace, "delete", "statefulset", "etcd")
    async with process(scene.settings) as started:
        await eventually("the repair of etcd", lambda: uid(cluster, scene, "StatefulSet/etcd"))
        assert started.returncode is None
        on.etcd.start()
        on.jazz.start()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))


async def test_killed_in_the_middle_of_an_apply_the_next_one_completes_it(cluster: ClusterInfo, scene: Stage) -> None:
    """Kill -9 at the first object that is live; afterwards each object is there, none was made twice."""
    desired = [config_map(f"part-{number}", x="1") for number in range(12)] + [workload("Deployment", "web")]
    async with process(scene.settings) as first:
        alpha = await _when_published(scene)
        stack = await alpha.declare("demo", *desired)

        async def begun() -> list[str]:
            text = await shell(kubectl, cluster, "-n", scene.namespace, "get", "configmap", "-o", "name")
            return [line for line in text.split() if "/part-" in line]

        name = (await eventually("the first object", begun, within=60))[0].rpartition("/")[2]
        first.send_signal(signal.SIGKILL)
        await first.wait()
    before = await uid(cluster, scene, f"ConfigMap/{name}")
    async with process(scene.settings):
        assert (await alpha.applied(stack))["error"] is None
    assert await uid(cluster, scene, f"ConfigMap/{name}") == before
    for manifest in desired:
        assert await uid(cluster, scene, f"{manifest['kind']}/{manifest['metadata']['name']}")


async def test_a_stop_finishes_the_work_reports_and_releases_the_lease(cluster: ClusterInfo, scene: Stage) -> None:
    """SIGTERM in the middle of an apply: exit code 0, and the next one need not wait for the lease to run out."""
    async with process(scene.settings) as first:
        alpha = await _when_published(scene)
        stack = await alpha.declare("demo", *[config_map(f"part-{number}", x="1") for number in range(8)])
        await alpha.report("demo", lambda now: now.get("ConfigMap/part-0", {}).get("status") == "requested")
        first.send_signal(signal.SIGTERM)
        assert await first.wait() == 0
    async with process(scene.settings):
        assert (await alpha.applied(stack))["error"] is None


async def test_two_at_once_lead_one_after_the_other(cluster: ClusterInfo, scene: Stage) -> None:
    """The second, on the same volume, is not ready while the first leads, and takes over when that stops."""
    second = replace_settings(scene)
    async with second.running():
        alpha = await scene.alpha()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
        async with scene.running() as waiting:
            await alpha.applied(await alpha.declare("demo", config_map("a", x="2")))
            await restored(cluster, scene, "ConfigMap/a")
            assert waiting._term is None
    async with scene.running():
        await alpha.applied(await alpha.declare("demo", config_map("a", x="3")))
        await restored(cluster, scene, "ConfigMap/a")


async def test_nothing_is_restored_while_the_cluster_is_being_destroyed(cluster: ClusterInfo, scene: Stage) -> None:
    async with scene.running() as sentinel:
        alpha = await scene.alpha()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
        marker = ["create", "configmap", "reside-teardown"]
        await shell(kubectl, cluster, "-n", scene.namespace, *marker)
        await shell(
            kubectl, cluster, "-n", scene.namespace, "label", "configmap", "reside-teardown",
            "app.kubernetes.io/managed-by=kubernetes-sentinel",
        )  # fmt: skip
        assert sentinel._term is not None
        cache = sentinel._term._context.guard.cache
        await eventually("that the marker is seen", lambda: cache.is_teardown)
        await shell(kubectl, cluster, "-n", scene.namespace, "delete", "configmap", "a")
        await alpha.declare("demo", config_map("a", x="2"))
        report = await alpha.report("demo", lambda now: now.get("error"))
        assert "being destroyed" in report["error"]
        assert await uid(cluster, scene, "ConfigMap/a") is None


def replace_settings(scene: Stage) -> Stage:
    """Return the same Sentinel as another process would be: it listens elsewhere."""
    return replace(scene, settings=scene.settings.model_copy(update={"listen_port": 0}))


async def _when_published(scene: Stage) -> Declarer:
    """Alpha, once a Sentinel that runs as a process has carried out its grants."""
    return await scene.alpha()
