"""Without Jazz or etcd, killed, stopped, or with a second one, the Sentinel loses and duplicates nothing."""

import asyncio
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from integration.sentinel.processes import process
from integration.sentinel.setup import Setup
from support.declarer import Declarer
from support.eventually import eventually
from support.replicas import Servers, run_servers
from support.reports import report
from support.sentinel import config_map, get, kubectl, service, workload

from reside.local import ClusterInfo
from reside.locks.etcd import Etcd, decode, encode
from reside.model.constants import PLATFORM_STACK
from reside.sentinel.app import LEADER_KEY, Sentinel
from reside.sentinel.settings import SentinelSettings

pytestmark = pytest.mark.anyio


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
    for lease in await leases(setup):  # they end by themselves after 30 s: the follower below waits for that
        await _etcd(setup, "/v3/lease/revoke", {"ID": lease})
    before = await uid(cluster, setup, f"ConfigMap/{name}")
    async with process(setup.settings):
        assert (await alpha.applied(stack))["error"] is None
    assert await uid(cluster, setup, f"ConfigMap/{name}") == before
    for manifest in desired:
        assert await uid(cluster, setup, f"{manifest['kind']}/{manifest['metadata']['name']}")


async def test_a_stop_completes_the_apply_reports_and_gives_the_lease_back(cluster: ClusterInfo, setup: Setup) -> None:
    """SIGTERM in the middle of an apply: exit code 0, and etcd has neither the leader's key nor its lease any more."""
    async with process(setup.settings) as first:
        alpha = await _when_published(setup)
        many = [config_map(f"part-{number}", x="1") for number in range(200)]  # it takes seconds
        stack = await alpha.declare("demo", *many)
        await alpha.report("demo", lambda now: now.get("ConfigMap/part-0", {}).get("status") == "requested")
        lease = await leader_lease(setup)
        assert lease is not None
        assert lease in await leases(setup)
        first.send_signal(signal.SIGTERM)
        assert await first.wait() == 0
    assert await leader_lease(setup) is None
    assert lease not in await leases(setup)
    async with process(setup.settings):
        assert (await alpha.applied(stack))["error"] is None


class Follower(Sentinel):
    """Tells when it waits for the lease."""

    def __init__(self, settings: SentinelSettings) -> None:
        super().__init__(settings)
        self.waits = asyncio.Event()

    async def _wait_for_term(self, *arguments: Any) -> None:
        self.waits.set()
        await super()._wait_for_term(*arguments)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_a_waiting_follower_takes_over(cluster: ClusterInfo, setup: Setup, how: signal.Signals) -> None:
    """Two on one volume: the second one does not lead while the first one does, and leads after its stop or death."""
    async with process(setup.settings) as first:
        alpha = await _when_published(setup)
        await alpha.applied(await alpha.declare("demo", config_map("a", x="1")))
        held = await leader_lease(setup)
        async with replace_settings(setup).running(Follower) as waiting:
            async with asyncio.timeout(60):
                await waiting.waits.wait()
            await alpha.applied(await alpha.declare("demo", config_map("a", x="2")))
            await restored(cluster, setup, "ConfigMap/a")
            assert waiting._term is None
            assert await leader_lease(setup) == held
            began = time.monotonic()
            first.send_signal(how)
            await first.wait()
            stack = await alpha.declare("demo", config_map("a", x="3"))
            await eventually("that the follower leads", lambda: waiting._term, within=60)
            report(f"after {how.name} the waiting Sentinel leads within {time.monotonic() - began:.1f} s")
            await alpha.applied(stack)
            await restored(cluster, setup, "ConfigMap/a")
            assert await leader_lease(setup) not in {None, held}


async def leader_lease(setup: Setup) -> int | None:
    """Return the lease of the leader's key in etcd; None if nobody leads."""
    found = await _etcd(setup, "/v3/kv/range", {"key": encode("\0"), "range_end": encode("\0"), "keys_only": True})
    keys = {decode(entry["key"]): int(entry["lease"]) for entry in found.get("kvs", []) if "lease" in entry}
    return next((lease for key, lease in keys.items() if key.endswith(f"/{LEADER_KEY}")), None)


async def leases(setup: Setup) -> set[int]:
    """Return all leases of etcd."""
    return {int(lease["ID"]) for lease in (await _etcd(setup, "/v3/lease/leases", {})).get("leases", [])}


async def _etcd(setup: Setup, path: str, body: dict[str, Any]) -> dict[str, Any]:
    client = Etcd(setup.settings.etcd_hosts)
    try:
        return await client.gateway.post(path, body)
    finally:
        await client.aclose()


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
