"""Strangers attack every value of the platform at once: replicas are loaded and updated all the same."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from integration.sentinel.pair import Pair, new_pair
from interop.strangers.attacking import GUESSED, attacking
from support.alpha_cluster import Servers, run_servers

from reside.local import ClusterInfo
from reside.model import lookup

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module", params=["open", "members"])
def servers(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with run_servers(tmp_path_factory.mktemp("strangers"), mode=request.param) as running:
        yield running


@pytest.fixture
async def pair(cluster: ClusterInfo, servers: Servers, tmp_path: Path) -> AsyncIterator[Pair]:
    async with new_pair(cluster, servers, tmp_path) as made:
        yield made


async def test_replicas_are_loaded_and_updated_under_all_attacks(
    pair: Pair, servers: Servers, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for image in ("greeter:v1", "greeter:v2", "second:v1"):
        about = {"name": image.partition(":")[0], "class": "long-running", "exclusive": True, "scalable": True}
        await servers.push(f"examples/{image}", type="replica", info=about)
    admin = await pair.alpha.admin()
    await admin.load("examples/greeter:v1")
    await pair.wait("Deployment/greeter-1")
    greeter = await pair.alpha.replica("greeter")
    node = pair.alpha.alpha.data.node
    cores = [core for core in node._host.store.cores.values() if core.header is not None]
    async with attacking(
        servers.jazz.url,
        values=[core.co_id for core in cores],
        groups=[core.co_id for core in cores if core.header is not None and core.header.is_group],
        names=[*GUESSED, "greeter", "second", lookup.replica_by_name("second")],
        folder=tmp_path,
    ) as attack:
        await attack.round()
        other = await pair.alpha.client("other")
        await asyncio.gather(admin.load("examples/greeter:v2", replica_id=greeter.id), admin.load("examples/second:v1"))
        await asyncio.gather(pair.wait("Deployment/greeter-2"), pair.wait("Deployment/second-1"))
        public = pair.alpha.alpha.data.public.id
        found = await other.node.find_unique_map(public, lookup.replica_by_name("second"))
        assert found is not None
        assert attack.is_running
    refused = [core for core in node._host.store.cores.values() if core.skipped is not None or core.rejected]
    assert bool(refused) == ("open" in request.node.name)
