"""A canary is loaded, promoted, aborted and fails, wherever Alpha dies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from integration.alpha.deaths import Death, death_at, lead_until_killed
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers, alpha_cluster
from support.eventually import eventually

from reside.alpha import lookups
from reside.alpha.app import started
from reside.alpha.contracts import contract_id
from reside.alpha.managing import canary
from reside.model import lookup
from reside.model.errors import Conflict, LoadRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.model.entities import LoadRequest, Replica

pytestmark = pytest.mark.anyio

READING = f"{HOST}/contracts/reading.v1"
WORKING = f"{HOST}/contracts/working.v1"
ARCHIVING = f"{HOST}/contracts/archiving.v1"
SOON = {"deadlineS": 1}


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster, servers: Servers) -> Client:
    """Return the super admin of a cluster with a library that grants `read`."""
    admin = await cluster.admin()
    await servers.push("contracts/reading.v1", type="contract", permissions={"read": {}})
    for name in ("working", "archiving"):
        await servers.push(f"contracts/{name}.v1", type="contract", methods={"work": {}})
    info = {"name": "library", "class": "long-running", "exclusive": True, "scalable": True}
    implementations = {"reading": {"identity": READING}}
    await servers.push("examples/library:v1", type="replica", info=info, implementations=implementations)
    await admin.load("examples/library:v1")
    await cluster.has_status("library", "running")
    return admin


async def push(servers: Servers, name: str, version: int, *, more: bool = False) -> None:
    """Push a version of a worker; with `more`, it also archives, and requires the permission `read`."""
    implemented = {"working": {"identity": WORKING}} | ({"archiving": {"identity": ARCHIVING}} if more else {})
    await servers.push(
        f"examples/{name}:v{version}",
        type="replica",
        info={"name": name, "class": "long-running", "exclusive": True, "scalable": True},
        displayInfo={"en": {"title": f"version {version}"}},
        implementations=implemented,
        requirements={"reading": {"identity": READING, "permissions": [{"name": "read"}]}} if more else {},
    )


async def load_canary(admin: Client, name: str, version: int = 2, **members: Any) -> LoadRequest:
    return await admin.load(f"examples/{name}:v{version}", canaryPercent=25, **members)


async def worker(cluster: AlphaCluster, servers: Servers, admin: Client, name: str, pods: int = 4) -> Replica:
    """Load a worker with several pods, and push its second version."""
    await push(servers, name, 1)
    await push(servers, name, 2, more=True)
    await admin.load(f"examples/{name}:v1")
    await cluster.has_status(name, "running")
    replica = await cluster.replica(name)
    await admin.call("scale-replica", {"replica": replica.id, "pods": pods})
    await have_pods(cluster, name, {1: pods})
    return replica


async def have_pods(cluster: AlphaCluster, name: str, pods: dict[int, int]) -> None:
    """Wait until the versions of a replica have these numbers of pods."""
    wanted = {f"{name}-{number}": count for number, count in pods.items()}
    await eventually(
        f"the pods {wanted}", lambda: cluster.orders.seen[name][-1], lambda seen: seen == wanted, within=60
    )


def since_scaled(cluster: AlphaCluster, name: str, pods: int) -> list[dict[str, int]]:
    """Return the numbers of pods that a worker was to have since it was scaled."""
    seen = cluster.orders.seen[name]
    return seen[seen.index({f"{name}-1": pods}) :]


async def may_read(cluster: AlphaCluster, replica: Replica) -> bool:
    """Return whether a replica is expected to have the permission `read`."""
    entries = await cluster.permissions("library")
    return any(entry.ref.account == replica.account and entry.expected.granted for entry in entries)


async def lost(cluster: AlphaCluster, replica: Replica) -> None:
    """Wait until a replica is not expected to have the permission `read`."""
    await eventually("its end", lambda: may_read(cluster, replica), lambda found: not found, within=60)


async def archivers(cluster: AlphaCluster) -> list[str]:
    """Return the maps of the replicas that are listed as providers of the contract that only second versions have."""
    number = await contract_id(cluster.alpha.data, ARCHIVING)
    assert number is not None
    return await lookups.find_all(cluster.alpha.data, lookup.replicas_by_contract(number))


async def test_a_canary_runs_beside_the_current_version_until_it_is_promoted(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    subject = await worker(cluster, servers, admin, "promoted")
    request = await load_canary(admin, "promoted")
    await cluster.has_status("promoted", "running", "running")
    await have_pods(cluster, "promoted", {1: 3, 2: 1})
    found = await cluster.replica("promoted")
    assert (request.version, found.current_version, found.canary) == (2, 1, 2)
    assert await may_read(cluster, subject)
    assert await archivers(cluster) == [], "callers of a contract that only the canary implements would reach the other"
    await admin.call("promote-canary", {"replica": subject.id, "version": 2})
    await cluster.has_status("promoted", "stopped", "running")
    await have_pods(cluster, "promoted", {2: 4})
    found = await cluster.replica("promoted")
    assert (found.current_version, found.canary) == (2, None)
    await eventually("the provider", lambda: archivers(cluster), lambda found: len(found) == 1)
    await admin.call("promote-canary", {"replica": subject.id, "version": 2})
    for pods in since_scaled(cluster, "promoted", 4):
        assert pods.get("promoted-1", 0) >= 3 or pods.get("promoted-2") == 4, "old pods stop once all new ones run"


async def test_an_aborted_canary_ends_with_its_grants_and_never_becomes_current(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    subject = await worker(cluster, servers, admin, "aborted")
    await load_canary(admin, "aborted")
    await cluster.has_status("aborted", "running", "running")
    assert await may_read(cluster, subject)
    for _ in range(2):
        await admin.call("abort-canary", {"replica": subject.id, "version": 2})
    await cluster.has_status("aborted", "running", "stopped")
    await have_pods(cluster, "aborted", {1: 4})
    await lost(cluster, subject)
    found = await cluster.replica("aborted")
    assert (found.current_version, found.canary, found.version(2).rolled_back_to) == (1, None, 1)
    with pytest.raises(Conflict, match="version 2 is not the canary of aborted, it has none"):
        await admin.call("promote-canary", {"replica": subject.id, "version": 2})
    await load_canary(admin, "aborted")
    await cluster.has_status("aborted", "running", "stopped", "running")


async def test_a_canary_that_is_not_healthy_in_time_is_aborted_with_the_reason(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    subject = await worker(cluster, servers, admin, "failed")
    cluster.orders.hold.add("Deployment/failed-2")
    cluster.orders.problems["Deployment/failed-2"] = "CrashLoopBackOff: exit code 3"
    await load_canary(admin, "failed", health=SOON | {"onFailure": "stay"})
    await cluster.has_status("failed", "running", "stopped")
    found = await cluster.replica("failed")
    assert (found.current_version, found.canary, found.version(2).rolled_back_to) == (1, None, 1)
    assert found.version(2).reason == "it was not healthy within 1 s: CrashLoopBackOff: exit code 3"
    await lost(cluster, subject)
    assert {pods["failed-1"] for pods in since_scaled(cluster, "failed", 4)} == {4}, "it took no pod"


async def test_what_is_refused_while_there_is_a_canary_and_what_stops_both(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    subject = await worker(cluster, servers, admin, "refused")
    waiting = await admin.create("examples/refused:v2")
    revision = (await admin.settled(waiting)).revision
    cluster.orders.hold.add("Deployment/refused-2")
    await load_canary(admin, "refused")
    await cluster.has_status("refused", "running", "starting")
    with pytest.raises(LoadRefused, match="has a canary, version 2: promote or abort it first"):
        await admin.call("approve-load-request", {"id": waiting, "revision": revision})
    for members in ({}, {"canaryPercent": 25}):
        request = await admin.settled(await admin.create("examples/refused:v2", **members))
        assert "has a canary, version 2: promote or abort it first" in str(request.error_message)
    with pytest.raises(Conflict, match="version 2 of refused is starting and has never been healthy"):
        await admin.call("promote-canary", {"replica": subject.id, "version": 2})
    for method in ("promote-canary", "abort-canary"):
        with pytest.raises(Conflict, match="version 3 is not the canary of refused, that is version 2"):
            await admin.call(method, {"replica": subject.id, "version": 3})
    cluster.orders.hold.clear()
    cluster.sentinel.process_again()
    await have_pods(cluster, "refused", {1: 3, 2: 1})
    await admin.call("scale-replica", {"replica": subject.id, "pods": 8})
    await have_pods(cluster, "refused", {1: 6, 2: 2})
    await admin.call("disable-replica", {"replica": subject.id})
    await cluster.has_status("refused", "stopped", "stopped")
    await admin.call("enable-replica", {"replica": subject.id})
    await cluster.has_status("refused", "running", "running")
    seen = await admin.call("preview-deletion", {"replica": subject.id})
    assert {"Deployment/refused-1", "Deployment/refused-2"} <= set(seen["objects"])
    await admin.call("delete-replica", {"replica": subject.id, "revision": seen["revision"]})
    await eventually("the deletion", cluster.names, lambda names: "refused" not in names.values(), within=60)
    await lost(cluster, subject)


async def test_the_owner_promotes_a_canary(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    subject = await worker(cluster, servers, admin, "owned")
    owner = await cluster.client("owner")
    await admin.call("change-owner", {"replica": subject.id, "owner": owner.credentials.account_id})
    await load_canary(admin, "owned")
    await cluster.has_status("owned", "running", "running")
    await owner.call("promote-canary", {"replica": subject.id, "version": 2})
    await cluster.has_status("owned", "stopped", "running")


@pytest.mark.parametrize("point", range(1, 7))
async def test_the_load_of_a_canary_is_completed_by_the_next_alpha_wherever_one_dies(
    cluster: AlphaCluster, servers: Servers, admin: Client, point: int
) -> None:
    name = f"loaded{point}"
    await worker(cluster, servers, admin, name, pods=2)
    number = await admin.create(f"examples/{name}:v2", canaryPercent=50)
    request = await admin.settled(number)
    assert request.preview is not None, request.error_message
    await cluster.stop_leading()
    await admin.call("approve-load-request", {"id": number, "revision": request.revision})
    await lead_until_killed(cluster, point)
    cluster.lead()
    done = await admin.cluster_request(number, lambda r: r.version is not None)
    await cluster.has_status(name, "running", "running")
    found = await cluster.replica(name)
    assert (done.version, found.current_version, found.canary) == (2, 1, 2)
    assert await may_read(cluster, found)


@pytest.mark.parametrize("point", range(1, 4))
async def test_a_failed_canary_is_aborted_by_the_next_alpha_wherever_one_dies(
    cluster: AlphaCluster, servers: Servers, admin: Client, point: int
) -> None:
    name = f"doomed{point}"
    await worker(cluster, servers, admin, name, pods=2)
    cluster.orders.hold.add(f"Deployment/{name}-2")
    await load_canary(admin, name)

    async def since() -> Any:
        return (await cluster.replica(name)).version(2).starting_since

    await eventually("the start", since, within=60)
    await cluster.stop_leading()
    await cluster.make_overdue(name, 2)
    await lead_until_killed(cluster, point)
    cluster.lead()
    await cluster.has_status(name, "running", "stopped")
    found = await cluster.replica(name)
    assert (found.current_version, found.canary, found.version(2).rolled_back_to) == (1, None, 1)
    assert str(found.version(2).reason).startswith("it was not healthy within 600 s")


@pytest.mark.parametrize(("act", "point"), [(canary.promote, 1), (canary.abort, 1), (canary.abort, 2)])
async def test_an_act_whose_alpha_dies_is_completed_when_it_is_repeated(
    cluster: AlphaCluster, servers: Servers, admin: Client, act: Any, point: int
) -> None:
    name = f"{act.__name__}{point}"
    subject = await worker(cluster, servers, admin, name, pods=2)
    await load_canary(admin, name)
    await cluster.has_status(name, "running", "running")
    async with started(cluster.settings()) as other:
        with death_at(other, point), pytest.raises(Death):
            await act(other, subject.id, 2)
    await admin.call(f"{act.__name__}-canary", {"replica": subject.id, "version": 2})
    await cluster.has_status(name, *(("stopped", "running") if act is canary.promote else ("running", "stopped")))
    assert (await cluster.replica(name)).canary is None
