"""Replicas are enabled, disabled, placed and given away by calls, for managers and for their owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually

from reside.alpha import records
from reside.model.errors import InvalidInput, NotAllowed

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.model.entities import Replica

pytestmark = pytest.mark.anyio

INFO = {"name": "worker", "class": "long-running", "exclusive": False, "scalable": True}
METHODS = (
    "enable-replica",
    "disable-replica",
    "place-replica",
    "scale-replica",
    "change-owner",
    "refresh-replica",
    "promote-canary",
    "abort-canary",
    "preview-deletion",
    "delete-replica",
)


@pytest.fixture
async def owner(cluster: AlphaCluster) -> Client:
    """Return a person without permissions who owns the worker."""
    return await cluster.client("owner")


@pytest.fixture
async def worker(cluster: AlphaCluster, servers: Servers, admin: Client, owner: Client) -> Replica:
    """Load a replica for its owner."""
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    await admin.load("examples/worker:v1", ownerId=owner.credentials.account_id)
    await cluster.has_status("worker", "running")
    return await cluster.replica("worker")


def body(method: str, replica: int, owner: Client) -> dict[str, Any]:
    """Return a valid body of a method."""
    more: dict[str, dict[str, Any]] = {
        "place-replica": {"placementGroup": "ssd"},
        "change-owner": {"owner": owner.credentials.account_id},
        "scale-replica": {"pods": 2},
        "refresh-replica": {"digest": "0" * 64},
        "promote-canary": {"version": 1},
        "abort-canary": {"version": 1},
        "delete-replica": {"revision": "0" * 64},
    }
    return {"replica": replica, **more.get(method, {})}


async def test_the_owner_disables_and_enables_a_replica(cluster: AlphaCluster, worker: Replica, owner: Client) -> None:
    assert worker.owner == owner.credentials.account_id
    await owner.call("disable-replica", {"replica": worker.id})
    await cluster.has_status("worker", "stopped")
    await owner.call("enable-replica", {"replica": worker.id})
    await cluster.has_status("worker", "running")


@pytest.mark.parametrize("by_call", [True, False])
async def test_an_owner_can_not_enable_what_a_manager_has_disabled(
    cluster: AlphaCluster, worker: Replica, admin: Client, owner: Client, by_call: bool
) -> None:
    """8d00e49: the owner of a replica that was disabled after an incident could start it again."""
    if by_call:
        await admin.call("disable-replica", {"replica": worker.id})
    else:
        record = await records.find_replica(cluster.alpha.data, worker.id)
        assert record is not None
        (await admin.node.load_map(record.management.id)).set("enabled", False)
    await cluster.has_status("worker", "stopped")
    with pytest.raises(NotAllowed, match="worker was disabled by another account"):
        await owner.call("enable-replica", {"replica": worker.id})
    with pytest.raises(NotAllowed, match="worker was disabled by another account"):
        await owner.call("disable-replica", {"replica": worker.id})
    await cluster.has_status("worker", "stopped")
    await admin.call("enable-replica", {"replica": worker.id})
    await cluster.has_status("worker", "running")


async def test_a_manager_places_a_replica_and_takes_the_placement_back(
    cluster: AlphaCluster, worker: Replica, admin: Client, owner: Client
) -> None:
    async def placement() -> Any:
        stack = await cluster.alpha.sentinel.read_desired("worker")
        assert stack is not None
        objects = dict(zip(stack.keys(), stack.objects, strict=True))
        return objects["Deployment/worker-1"]["spec"]["template"]["spec"].get("nodeSelector")

    await admin.call("place-replica", {"replica": worker.id, "placementGroup": "ssd"})
    await eventually("the placement", placement, lambda found: found == {"reside.io/placement-group": "ssd"})
    await admin.call("place-replica", {"replica": worker.id, "placementGroup": None})
    await eventually("no placement", placement, lambda found: found is None)
    with pytest.raises(NotAllowed, match="replica:manage:all"):
        await owner.call("place-replica", {"replica": worker.id, "placementGroup": "ssd"})
    with pytest.raises(InvalidInput, match="placementGroup"):
        await admin.call("place-replica", {"replica": worker.id, "placementGroup": "not a label"})


async def test_who_gives_a_replica_away_may_not_change_it_any_more(
    cluster: AlphaCluster, worker: Replica, owner: Client
) -> None:
    other = await cluster.client("other")
    await owner.call("change-owner", body("change-owner", worker.id, other))
    with pytest.raises(NotAllowed, match="replica:manage:all"):
        await owner.call("disable-replica", {"replica": worker.id})
    await other.call("disable-replica", {"replica": worker.id})
    await cluster.has_status("worker", "stopped")


@pytest.mark.parametrize("method", METHODS)
async def test_strangers_change_nothing(cluster: AlphaCluster, worker: Replica, method: str) -> None:
    stranger = await cluster.client("stranger")
    with pytest.raises(NotAllowed, match="replica:manage:all"):
        await stranger.call(method, body(method, worker.id, stranger))
    assert await cluster.replica("worker") == worker


@pytest.mark.parametrize("method", METHODS)
async def test_a_replica_that_does_not_exist_is_named(admin: Client, method: str) -> None:
    with pytest.raises(InvalidInput, match=r"replica 999 does not exist: see `reside replica list`"):
        await admin.call(method, body(method, 999, admin))


async def test_an_owner_must_exist(admin: Client, worker: Replica) -> None:
    with pytest.raises(InvalidInput, match="can't be found in this cluster"):
        await admin.call("change-owner", {"replica": worker.id, "owner": "co_z" + "1" * 43})
