"""Versions that do not become healthy: they fail in time with a reason, and are rolled back if they should be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import HOST
from support.eventually import eventually

from reside.jazz import CoMap
from reside.model.errors import Conflict, InvalidInput

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.model.entities import LoadRequest, ReplicaVersion

pytestmark = pytest.mark.anyio

WORKING = f"{HOST}/contracts/working.v1"
SOON = {"deadlineS": 1}
Load = "Callable[..., Awaitable[LoadRequest]]"


@pytest.fixture
async def load(servers: Servers, admin: Client) -> Load:
    """Return a function that loads a version of the worker."""

    async def load(version: int, *, scalable: bool = True, **health: Any) -> LoadRequest:
        info = {"name": "worker", "class": "long-running", "exclusive": True, "scalable": scalable}
        shown = {"en": {"title": f"version {version}"}}
        await servers.push(f"examples/worker:v{version}", type="replica", info=info, displayInfo=shown)
        return await admin.load(f"examples/worker:v{version}", health=health)

    return load


async def version(cluster: AlphaCluster, number: int) -> ReplicaVersion:
    """Return a version of the worker."""
    return (await cluster.replica("worker")).version(number)


async def test_a_version_that_is_not_healthy_in_time_fails_and_the_old_one_serves_on(
    cluster: AlphaCluster, load: Load
) -> None:
    await load(1)
    await cluster.has_status("worker", "running")
    cluster.orders.hold.add("Deployment/worker-2")
    cluster.orders.problems["Deployment/worker-2"] = "CrashLoopBackOff: exit code 3"
    await load(2, **SOON)
    await cluster.has_status("worker", "running-outdated", "error")
    failed = await version(cluster, 2)
    assert failed.reason == "it was not healthy within 1 s: CrashLoopBackOff: exit code 3"
    assert cluster.orders.seen["worker"][-1] == {"worker-1": 1, "worker-2": 1}
    cluster.orders.hold.clear()
    cluster.orders.problems.clear()
    cluster.sentinel.process_again()
    await cluster.has_status("worker", "stopped", "running")
    assert (await version(cluster, 2)).reason is None


@pytest.mark.parametrize("scalable", [True, False])
async def test_a_version_is_rolled_back_to_the_last_healthy_one(
    cluster: AlphaCluster, load: Load, scalable: bool
) -> None:
    await load(1, scalable=scalable)
    await cluster.has_status("worker", "running")
    cluster.orders.hold.update(f"Deployment/worker-{number}" for number in (2, 3))
    await load(2, scalable=scalable)
    await load(3, scalable=scalable, **SOON, onFailure="roll-back")
    await cluster.has_status("worker", "running", "stopped", "stopped")
    replica = await cluster.replica("worker")
    assert replica.current_version == 1, "version 2 was never healthy"
    assert replica.version(3).rolled_back_to == 1
    assert "it was not healthy within 1 s" in str(replica.version(3).reason)
    await load(4, scalable=scalable)
    await cluster.has_status("worker", "stopped", "stopped", "stopped", "running")
    if not scalable:
        assert max(sum(pods.values()) for pods in cluster.orders.seen["worker"]) == 1


async def test_an_alpha_that_dies_between_the_two_writes_of_a_roll_back_is_finished_by_the_next(
    cluster: AlphaCluster, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    await load(1)
    await cluster.has_status("worker", "running")
    cluster.orders.hold.add("Deployment/worker-2")
    write, dies = CoMap.set, True

    def dying(value: CoMap, key: str, item: Any, **options: Any) -> None:
        if dies and key == "currentVersion" and item == 1:
            raise RuntimeError("the process dies here")
        write(value, key, item, **options)

    monkeypatch.setattr(CoMap, "set", dying)
    await load(2, **SOON, onFailure="roll-back")

    async def marked() -> Any:
        return (await version(cluster, 2)).rolled_back_to

    await eventually("the first write", marked, lambda found: found == 1)
    assert (await cluster.replica("worker")).current_version == 2
    await cluster.stop_leading()
    dies = False
    cluster.lead()
    await cluster.has_status("worker", "running", "stopped")


async def test_the_deadline_is_kept_by_the_next_leader(cluster: AlphaCluster, load: Load) -> None:
    cluster.orders.hold.add("Deployment/worker-1")
    await load(1, deadlineS=2)

    async def since() -> Any:
        return (await version(cluster, 1)).starting_since

    first = await eventually("the start", since)
    await cluster.stop_leading()
    cluster.lead()
    await cluster.has_status("worker", "error")
    assert (await version(cluster, 1)).starting_since == first


async def test_a_policy_that_can_not_be_met_is_named(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    with pytest.raises(InvalidInput, match="minReadyS must be less than deadlineS"):
        await admin.create("examples/worker:v1", health={"deadlineS": 5, "minReadyS": 5})


async def test_min_ready_seconds_are_those_of_the_deployment(cluster: AlphaCluster, load: Load) -> None:
    await load(1, deadlineS=60, minReadyS=7)
    await cluster.has_status("worker", "running")
    stack = await cluster.alpha.sentinel.read_desired("worker")
    assert stack is not None
    spec = dict(zip(stack.keys(), stack.objects, strict=True))["Deployment/worker-1"]["spec"]
    assert (spec["minReadySeconds"], spec["progressDeadlineSeconds"]) == (7, 60)


async def test_a_scalable_replica_has_several_pods(cluster: AlphaCluster, load: Load, admin: Client) -> None:
    await load(1)
    await cluster.has_status("worker", "running")
    replica = await cluster.replica("worker")
    await admin.call("scale-replica", {"replica": replica.id, "pods": 3})
    await eventually("three pods", lambda: cluster.orders.seen["worker"][-1] == {"worker-1": 3})
    await load(2)
    await cluster.has_status("worker", "stopped", "running")
    await eventually("the new version's pods", lambda: cluster.orders.seen["worker"][-1] == {"worker-2": 3})
    with pytest.raises(InvalidInput, match="pods"):
        await admin.call("scale-replica", {"replica": replica.id, "pods": 0})


async def test_a_replica_that_is_not_scalable_has_one_pod(cluster: AlphaCluster, load: Load, admin: Client) -> None:
    await load(1, scalable=False)
    replica = await cluster.replica("worker")
    with pytest.raises(Conflict, match="can't have 2 pods, because it is not scalable"):
        await admin.call("scale-replica", {"replica": replica.id, "pods": 2})


async def test_an_old_version_that_never_ran_is_stopped(cluster: AlphaCluster, load: Load) -> None:
    """fdfab45: its status stayed `unknown`, since its workload was never created."""
    cluster.orders.reporting = False
    await load(1)
    await load(2)
    cluster.orders.reporting = True
    cluster.sentinel.process_again()
    await cluster.has_status("worker", "stopped", "running")
