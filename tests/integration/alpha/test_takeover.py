"""Alpha fails in the middle of a load: the next leader completes it and duplicates nothing.

The crash is simulated exactly: at the n-th write of the load, everything written before is on the server, nothing after
it, and the process's memory is lost. Locks are released immediately here; after a real kill they expire.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from integration.alpha.deaths import lead_until_killed
from support.alpha_cluster import HOST, AlphaCluster, Client, Servers, alpha_cluster

from reside.alpha import records
from reside.alpha.granting.control_blocks import opened
from reside.jazz import Node
from reside.model.permissions import Grant

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


pytestmark = pytest.mark.anyio

GREETING = f"{HOST}/contracts/greeting.v1"
POINTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 23, 26, 30, 35)


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster, servers: Servers) -> Client:
    admin = await cluster.admin()
    await servers.push("contracts/greeting.v1", type="contract", permissions={"greet": {}}, methods={"greet": {}})
    implementations = {"greeting": {"identity": GREETING}}
    info = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    await servers.push("examples/greeter:v1", type="replica", info=info, implementations=implementations)
    await admin.load("examples/greeter:v1")
    await cluster.has_status("greeter", "running")
    return admin


@pytest.mark.parametrize("point", POINTS)
async def test_a_load_killed_anywhere_is_completed_by_the_next_alpha(
    cluster: AlphaCluster, servers: Servers, admin: Client, point: int
) -> None:
    name = f"caller{point}"
    info = {"name": name, "class": "long-running", "exclusive": True, "scalable": False}
    requirements = {"greeting": {"identity": GREETING, "permissions": [{"name": "greet"}]}}
    await servers.push(f"examples/{name}:v1", type="replica", info=info, requirements=requirements)
    number = await admin.create(f"examples/{name}:v1")
    request = await admin.settled(number)
    assert request.preview is not None, request.error_message
    await cluster.stop_leading()
    await admin.call("approve-load-request", {"id": number, "revision": request.revision})
    before = await cluster.names()
    await lead_until_killed(cluster, point)
    cluster.lead()
    done = await admin.cluster_request(number, lambda r: r.version is not None)
    await cluster.has_status(name, "running")
    await nothing_is_there_twice(cluster, name, before)
    assert done.target_replica == (await cluster.replica(name)).id


async def nothing_is_there_twice(cluster: AlphaCluster, name: str, before: dict[int, str]) -> None:
    data = cluster.alpha.data
    async with Node(cluster.servers.jazz.url, cluster.credentials) as node:
        await node.login()
        replicas = [await node.load_map(co_id) for co_id in (await node.load_list(data.root["replicas"])).as_list()]
        assert sorted(r["name"] for r in replicas) == sorted([*before.values(), name])
        ids = [r["id"] for r in replicas]
        assert len(set(ids)) == len(ids)
        blocks = [await node.load_map(co_id) for co_id in (await node.load_list(data.root["controlBlocks"])).as_list()]
        assert sorted(b["name"] for b in blocks) == sorted({"alpha", "kubernetes-sentinel", *before.values(), name})
        contracts = (await node.load_list(data.root["contracts"])).as_list()
        assert len(contracts) == len(set(contracts))
    replica = await cluster.replica(name)
    assert [v.id for v in replica.versions] == [1]
    greeter = (await records.replicas_of(data, f"{HOST}/examples/greeter"))[0].value
    async with opened(cluster.alpha.node, greeter.control_block) as block:
        mine = [p.expected for p in block.permissions() if p.ref.account == replica.account]
    assert mine == [Grant(granted=True)]
