"""A version belongs to its request: no kill between two writes makes two requests share one version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from integration.alpha.deaths import lead_until_killed
from support.alpha_cluster import AlphaCluster, Client, Servers, alpha_cluster

from reside.alpha.app import started
from reside.alpha.versions import create_version
from reside.model.errors import Conflict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster) -> Client:
    return await cluster.admin()


async def push(servers: Servers, name: str, version: int) -> str:
    """Push a version of a replica, and return its digest."""
    info = {"name": name, "class": "long-running", "exclusive": True, "scalable": True}
    return await servers.push(
        f"examples/{name}:v{version}", type="replica", info=info, displayInfo={"en": {"title": f"version {version}"}}
    )


async def revision(admin: Client, number: int) -> str:
    """Wait until a request requires approval, and return the revision to approve."""
    request = await admin.settled(number)
    assert request.status == "requires-approval", request.error_message
    assert request.preview is not None
    return str(request.revision)


async def conflict(admin: Client, number: int, revision: str) -> str | None:
    """Approve a request; return why Alpha refused it, if it is in conflict with the current state."""
    try:
        await admin.call("approve-load-request", {"id": number, "revision": revision})
    except Conflict as error:
        return str(error)
    return None


@pytest.mark.parametrize("point", range(1, 9))
async def test_two_requests_get_a_version_each_wherever_the_first_leader_dies(
    cluster: AlphaCluster, servers: Servers, admin: Client, point: int
) -> None:
    """b5760d8: the second request took the version that the first one had chosen, and one image was never deployed."""
    name = f"twice{point}"
    digests = [await push(servers, name, version) for version in (1, 2, 3)]
    await admin.load(f"examples/{name}:v1")
    await cluster.has_status(name, "running")
    numbers = [await admin.create(f"examples/{name}:v{version}") for version in (2, 3)]
    revisions = [await revision(admin, number) for number in numbers]
    await cluster.stop_leading()
    await admin.call("approve-load-request", {"id": numbers[0], "revision": revisions[0]})
    await lead_until_killed(cluster, point)
    refused = await conflict(admin, numbers[1], revisions[1])
    async with started(cluster.settings()) as other:
        await create_version(other, numbers[1])  # before the first one: a queue has no order
    cluster.lead()
    if refused is not None:
        assert "previewed again" in refused
        await admin.approve_latest(numbers[1])  # the first rollout goes on, and may change the preview once more
    done = [await admin.cluster_request(number, lambda r: r.version is not None) for number in numbers]
    replica = await cluster.replica(name)
    assert [version.digest for version in replica.versions] == digests
    assert [replica.version(request.version or 0).digest for request in done] == digests[1:]
    assert [replica.version(request.version or 0).request for request in done] == numbers
    await cluster.has_status(name, "stopped", "stopped", "running")
