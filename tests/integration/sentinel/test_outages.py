"""Without Jazz or etcd, killed, stopped, or with a second one, the Sentinel loses and duplicates nothing."""

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
from integration.sentinel.setup import Setup
from support.declarer import Declarer
from support.eventually import eventually
from support.replicas import Servers, run_servers
from support.sentinel import config_map, get, kubectl, service, workload

from reside.local import ClusterInfo
from reside.model.constants import PLATFORM_STACK
from reside.sentinel.settings import SentinelSettings

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Servers that a test may kill."""
    with run_servers() as running:
        yield running


async def shell(function: Any, *arguments: Any) -> Any:
    return await asyncio.to_thread(function, *arguments)


async def uid(cluster: ClusterInfo, setup: Setup, key: str) -> str | None:
    found = await shell(get, cluster, setup.namespace, key)
    return found["metadata"]["uid"] if found else None


async def restored(cluster: ClusterInfo, setup: Setup, key: str) -> None:
    """Delete an object, and wait until another one replaces it."""
    before = await uid(cluster, setup, key)
    kind, _, name = key.partition("/")
    await shell(kubectl, cluster, "-n", setup.namespace, "delete", kind, name, "--wait=false")
    await eventually(f"another {key}", lambda: uid(cluster, setup, key), lambda now: now not in (None, before))


@asynccontextmanager
async def process(chosen: SentinelSettings) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yield the Sentinel as its pod runs it; its log goes to its state folder."""
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
    """Return a small stack like the one that the hand-over declares."""
    return [workload("StatefulSet", "etcd", PLATFORM_STACK), service("etcd", PLATFORM_STACK)]


async def test_the_platform_is_restored_while_jazz_and_etcd_are_unavailable(
    cluster: ClusterInfo, setup: Setup, servers: Servers
) -> None:
    """The leader continues to repair, and follows declared stacks again when both have returned."""
    async with setup.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare(PLATFORM_STACK, *platform()))
        servers.jazz.kill()
        servers.etcd.kill()
        await restored(cluster, setup, "StatefulSet/etcd")
        await restored(cluster, setup, "Service/etcd")
        servers.etcd.start()
        servers.jazz.start()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))


async def test_a_sentinel_that_starts_without_jazz_and_etcd_restores_first_and_logs_in_later(
    cluster: ClusterInfo, setup: Setup, servers: Servers
) -> None:
    async with setup.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare(PLATFORM_STACK, *platform()))
    servers.jazz.kill()
    servers.etcd.kill()
    await shell(kubectl, cluster, "-n", setup.namespace, "delete", "statefulset", "etcd")
    async with process(setup.settings) as started:
        await eventually("the repair of etcd", lambda: uid(cluster, setup, "StatefulSet/etcd"))
        assert started.returncode is None
        servers.etcd.start()
        servers.jazz.start()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))


async def test_an_apply_is_completed_after_a_kill(cluster: ClusterInfo, setup: Setup) -> None:
    """Kill -9 at the first object that is live; afterwards each object exists, and none was created twice."""
    desired = [config_map(f"part-{number}", x="1") for number in range(12)] + [workload("Deployment", "web")]
    async with process(setup.settings) as first:
        alpha = await _when_published(setup)
        stack = await alpha.declare("demo", *desired)

        async def begun() -> list[str]:
            text = await shell(kubectl, cluster, "-n", setup.namespace, "get", "configmap", "-o", "name")
            return [line for line in text.split() if "/part-" in line]

        name = (await eventually("the first object", begun, within=60))[0].rpartition("/")[2]
        first.send_signal(signal.SIGKILL)
        await first.wait()
    before = await uid(cluster, setup, f"ConfigMap/{name}")
    async with process(setup.settings):
        assert (await alpha.applied(stack))["error"] is None
    assert await uid(cluster, setup, f"ConfigMap/{name}") == before
    for manifest in desired:
        assert await uid(cluster, setup, f"{manifest['kind']}/{manifest['metadata']['name']}")


async def test_a_stop_completes_the_apply_reports_and_releases_the_lease(cluster: ClusterInfo, setup: Setup) -> None:
    """SIGTERM in the middle of an apply: exit code 0, and the next one need not wait for the lease to expire."""
    async with process(setup.settings) as first:
        alpha = await _when_published(setup)
        stack = await alpha.declare("demo", *[config_map(f"part-{number}", x="1") for number in range(8)])
        await alpha.report("demo", lambda now: now.get("ConfigMap/part-0", {}).get("status") == "requested")
        first.send_signal(signal.SIGTERM)
        assert await first.wait() == 0
    async with process(setup.settings):
        assert (await alpha.applied(stack))["error"] is None


async def test_two_running_sentinels_lead_one_after_the_other(cluster: ClusterInfo, setup: Setup) -> None:
    """The second one, on the same volume, is not ready while the first one leads, and takes over when that stops."""
    second = replace_settings(setup)
    async with second.running():
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
        async with setup.running() as waiting:
            await alpha.applied(await alpha.declare("demo", config_map("a", x="2")))
            await restored(cluster, setup, "ConfigMap/a")
            assert waiting._term is None
    async with setup.running():
        await alpha.applied(await alpha.declare("demo", config_map("a", x="3")))
        await restored(cluster, setup, "ConfigMap/a")


async def test_nothing_is_restored_while_the_cluster_is_being_destroyed(cluster: ClusterInfo, setup: Setup) -> None:
    async with setup.running() as sentinel:
        alpha = await setup.alpha()
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
        marker = ["create", "configmap", "reside-teardown"]
        await shell(kubectl, cluster, "-n", setup.namespace, *marker)
        await shell(
            kubectl, cluster, "-n", setup.namespace, "label", "configmap", "reside-teardown",
            "app.kubernetes.io/managed-by=kubernetes-sentinel",
        )  # fmt: skip
        assert sentinel._term is not None
        cache = sentinel._term._context.guard.cache
        await eventually("that the marker is seen", lambda: cache.is_teardown)
        await shell(kubectl, cluster, "-n", setup.namespace, "delete", "configmap", "a")
        await alpha.declare("demo", config_map("a", x="2"))
        report = await alpha.report("demo", lambda now: now.get("error"))
        assert "being destroyed" in report["error"]
        assert await uid(cluster, setup, "ConfigMap/a") is None


def replace_settings(setup: Setup) -> Setup:
    """Return the same Sentinel in the way of another process: it listens on another port."""
    return replace(setup, settings=setup.settings.model_copy(update={"listen_port": 0}))


async def _when_published(setup: Setup) -> Declarer:
    """Return a declarer for Alpha, once a Sentinel that runs as a process has granted its permissions."""
    return await setup.alpha()
