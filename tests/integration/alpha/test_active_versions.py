"""Old versions: nothing reads them, and what a deletion or a roll back needs to know about them is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import HOST
from support.eventually import eventually

from reside.alpha import lookups, records
from reside.alpha.app import started
from reside.alpha.granting.blocks import Blocks
from reside.alpha.rollouts import reconcile_replica
from reside.model import lookup
from reside.model.alpha_contract import DEPENDANTS_LISTED

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

pytestmark = pytest.mark.anyio

HUB = f"{HOST}/contracts/hub.v1"


async def load(
    servers: Servers, admin: Client, name: str, version: int, health: dict[str, Any] | None = None, **manifest: Any
) -> None:
    info = {"name": name, "class": "long-running", "exclusive": True, "scalable": True}
    shown = {"en": {"title": f"version {version}"}}
    await servers.push(f"examples/{name}:v{version}", type="replica", info=info, displayInfo=shown, **manifest)
    await admin.load(f"examples/{name}:v{version}", health=health or {})


async def make_earlier(cluster: AlphaCluster, *names: str) -> None:
    """Remove from replicas what an earlier release does not write."""
    for name in names:
        found = await cluster.alpha.node.load_map(await map_of(cluster, name))
        for member in ("activeVersions", "lastVersion", "lastHealthyVersion"):
            found.delete(member)
    await cluster.alpha.node.flush()


@pytest.fixture
async def hub(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    """Load a replica that others can require."""
    await servers.push("contracts/hub.v1", type="contract", permissions={"use": {}})
    await load(servers, admin, "hub", 1, implementations={"hub": {"identity": HUB}})
    await cluster.has_status("hub", "running")


REQUIRED = {"requirements": {"hub": {"identity": HUB, "permissions": [{"name": "use"}]}}}


async def active(cluster: AlphaCluster, name: str) -> Any:
    return (await records.read_outline(cluster.alpha.data, await map_of(cluster, name))).map["activeVersions"]


async def map_of(cluster: AlphaCluster, name: str) -> str:
    target = await lookups.find(cluster.alpha.data, lookup.replica_by_name(name))
    assert target is not None
    return target


async def requiring(cluster: AlphaCluster, name: str) -> list[str]:
    """Return the names of the replicas that are listed as dependants of a replica."""
    number = (await cluster.replica(name)).id
    listed = await lookups.find_all(cluster.alpha.data, lookup.dependants_of_replica(number))
    return [(await records.read_outline(cluster.alpha.data, co_id)).value.name for co_id in listed]


async def test_a_pass_loads_no_version_that_has_stopped(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    for version in (1, 2, 3):
        await load(servers, admin, "worker", version)
    await cluster.has_status("worker", "stopped", "stopped", "running")
    await eventually("one active version", lambda: active(cluster, "worker"), lambda found: list(found) == ["3"])
    await cluster.stop_leading()
    whole = await records.read_replica(cluster.alpha.data, await map_of(cluster, "worker"))
    async with started(cluster.settings(), serve=False) as alpha:
        blocks = Blocks(alpha.data, lambda _account: None)
        record = await records.find_active(alpha.data, whole.value.id)
        assert record is not None
        await reconcile_replica(alpha, blocks, record)
        loaded = {number: alpha.node.find(found.id) is not None for number, found in whole.versions.items()}
        assert loaded == {1: False, 2: False, 3: True}
        blocks.close()
    cluster.lead()
    await load(servers, admin, "worker", 4)
    await cluster.has_status("worker", "stopped", "stopped", "stopped", "running")


async def test_the_dependants_of_a_replica_are_those_whose_running_versions_require_it(
    cluster: AlphaCluster, servers: Servers, admin: Client, hub: None
) -> None:
    await load(servers, admin, "worker", 1, **REQUIRED)
    await cluster.has_status("worker", "running")
    assert await requiring(cluster, "hub") == ["worker"]
    await load(servers, admin, "worker", 2)
    await cluster.has_status("worker", "stopped", "running")
    await eventually("no dependant", lambda: requiring(cluster, "hub"), lambda found: found == [])
    seen = await admin.call("preview-deletion", {"replica": (await cluster.replica("hub")).id})
    assert seen["dependants"] == []


async def test_replicas_of_an_earlier_release_are_indexed_by_the_next_leader(
    cluster: AlphaCluster, servers: Servers, admin: Client, hub: None
) -> None:
    await load(servers, admin, "worker", 1, **REQUIRED)
    await cluster.has_status("worker", "running")  # a version that is replaced before it is healthy never was
    await load(servers, admin, "worker", 2, **REQUIRED)
    await cluster.has_status("worker", "stopped", "running")
    await cluster.stop_leading()
    data, number = cluster.alpha.data, (await cluster.replica("hub")).id
    await make_earlier(cluster, "hub", "worker")
    await lookups.remove_target(data, lookup.dependants_of_replica(number), await map_of(cluster, "worker"))
    data.root.set(DEPENDANTS_LISTED, False)
    await data.node.flush()
    seen = await admin.call("preview-deletion", {"replica": number})
    assert [dependant[1] for dependant in seen["dependants"]] == ["worker"], "meanwhile, all replicas are read"
    cluster.lead()
    await eventually("the index", lambda: data.root.get(DEPENDANTS_LISTED) is True)
    assert list(await active(cluster, "worker")) == ["2"]
    worker = await cluster.replica("worker")
    assert (worker.last_version, worker.last_healthy_version) == (2, 1)
    assert await requiring(cluster, "hub") == ["worker"]
    await load(servers, admin, "worker", 3)
    await cluster.has_status("worker", "stopped", "stopped", "running")


async def test_a_version_of_an_earlier_release_is_rolled_back_by_the_first_pass(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await load(servers, admin, "worker", 1)
    await cluster.has_status("worker", "running")
    cluster.orders.hold.add("Deployment/worker-2")
    await load(servers, admin, "worker", 2, health={"onFailure": "roll-back"})

    async def since() -> Any:
        return (await cluster.replica("worker")).version(2).starting_since

    await eventually("the start", since)
    await cluster.stop_leading()
    assert (await cluster.replica("worker")).current_version == 2
    await cluster.make_overdue("worker", 2)
    await make_earlier(cluster, "worker")
    cluster.lead()
    await cluster.has_status("worker", "running", "stopped")
    assert (await cluster.replica("worker")).version(2).rolled_back_to == 1
