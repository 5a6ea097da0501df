"""Requirements that are multiple or optional are resolved again when providers change: by a request for approval."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import HOST
from support.eventually import eventually

from reside.alpha import records
from reside.alpha.finished_requests import all_requests
from reside.alpha.granting.control_blocks import opened

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.model.entities import LoadRequest

pytestmark = pytest.mark.anyio

WORK = f"{HOST}/contracts/work.v1"


def info(name: str, *, exclusive: bool) -> dict[str, Any]:
    return {"name": name, "class": "long-running", "exclusive": exclusive, "scalable": True}


@pytest.fixture
async def images(servers: Servers) -> None:
    """Push a contract, a worker that implements it, and two replicas that require it."""
    await servers.push("contracts/work.v1", type="contract", permissions={"work": {}}, methods={"work": {}})
    implementations = {"work": {"identity": WORK}}
    await servers.push(
        "examples/worker:v1", type="replica", info=info("worker", exclusive=False), implementations=implementations
    )
    for name, members in (("all", {"multiple": True}), ("maybe", {"optional": True})):
        required = {"work": {"identity": WORK, "permissions": [{"name": "work"}], **members}}
        about = info(name, exclusive=True)
        await servers.push(f"examples/{name}:v1", type="replica", info=about, requirements=required)


async def requested(cluster: AlphaCluster, name: str) -> list[LoadRequest]:
    """Return the requests that Alpha has made for a replica, the oldest first."""
    mine = (await cluster.replica(name)).id
    found = [record.value for record in await all_requests(cluster.alpha.data)]
    return [r for r in found if r.owner == cluster.alpha.account and r.existing_replica == mine]


async def next_request(cluster: AlphaCluster, admin: Client, name: str, count: int) -> LoadRequest:
    """Wait until Alpha has made `count` requests for a replica; return the latest when it is validated."""
    made = await eventually(f"request {count} for {name}", partial(requested, cluster, name), lambda r: len(r) == count)
    return await admin.settled(made[-1].id)


def chosen(request: LoadRequest) -> list[str]:
    """Return the names of the replicas that a request would give to its requirement."""
    assert request.approve_request is not None, request.error_message
    return [replica.name for replica in request.approve_request.requirements["work"].replicas]


async def serving(cluster: AlphaCluster, name: str) -> int:
    """Return how many replicas serve the requirement in the control block of a replica."""
    async with opened(cluster.alpha.node, (await cluster.replica(name)).control_block) as block:
        return len(block.requirements().get("work", []))


@pytest.mark.usefixtures("images")
async def test_a_multiple_requirement_follows_its_providers_after_an_approval(
    cluster: AlphaCluster, admin: Client
) -> None:
    for image in ("worker", "all"):
        await admin.load(f"examples/{image}:v1")
    await eventually("the first worker", partial(serving, cluster, "all"), lambda count: count == 1)
    await admin.load("examples/worker:v1")
    request = await next_request(cluster, admin, "all", 1)
    assert chosen(request) == ["worker", "worker-1"]
    assert await serving(cluster, "all") == 1, "granted without an approval"
    await admin.approve(request.id)
    await eventually("both workers", partial(serving, cluster, "all"), lambda count: count == 2)
    second = next(r for r in await records.all_replicas(cluster.alpha.data) if r.value.name == "worker-1")
    second.management.set("enabled", False)
    request = await next_request(cluster, admin, "all", 2)
    assert chosen(request) == ["worker"]


@pytest.mark.usefixtures("images")
async def test_an_optional_requirement_is_requested_when_its_provider_appears_and_a_refusal_is_remembered(
    cluster: AlphaCluster, admin: Client
) -> None:
    for image in ("maybe", "worker"):
        await admin.load(f"examples/{image}:v1")
    request = await next_request(cluster, admin, "maybe", 1)
    assert chosen(request) == ["worker"]
    await admin.call("reject-load-request", {"id": request.id, "reason": "not wanted"})
    await cluster.stop_leading()
    cluster.lead()
    await admin.load("examples/worker:v1")  # a second provider changes nothing for a requirement of one
    await cluster.has_status("worker-1", "running")
    assert len(await requested(cluster, "maybe")) == 1
    assert await serving(cluster, "maybe") == 0


@pytest.mark.usefixtures("images")
async def test_what_an_approver_chose_is_not_resolved_again(cluster: AlphaCluster, admin: Client) -> None:
    await admin.load("examples/worker:v1")
    number = await admin.create("examples/all:v1")
    await admin.settled(number)
    await admin.approve(number, choices={"work": [3]})
    await admin.load("examples/worker:v1")
    await cluster.has_status("worker-1", "running")
    assert await requested(cluster, "all") == []
