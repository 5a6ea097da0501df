"""Alpha and the Sentinel together, both real, on a control plane: from an image to live objects and back."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.alpha_cluster import (
    AlphaCluster,
    Orders,
    Servers,
    alpha_settings,
    run_servers,
)
from support.eventually import eventually
from support.sentinel import get, kubectl, new_namespace, settings

from reside.alpha import bootstrap
from reside.alpha.app import started
from reside.jazz import Credentials
from reside.local import ClusterInfo
from reside.model.constants import SENTINEL_NAME
from reside.sentinel.app import Sentinel

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with run_servers(tmp_path_factory.mktemp("sentinel-alpha")) as running:
        yield running


@dataclass
class Pair:
    """Alpha and the Sentinel, both running, and their namespace."""

    alpha: AlphaCluster
    info: ClusterInfo
    namespace: str

    async def live(self, key: str) -> dict[str, Any] | None:
        """Return a live object."""
        return await asyncio.to_thread(get, self.info, self.namespace, key)

    async def wait(self, key: str) -> dict[str, Any]:
        """Return a live object once it exists."""
        found = await eventually(key, lambda: self.live(key), within=60)
        assert found is not None
        return found


@pytest.fixture
async def pair(cluster: ClusterInfo, servers: Servers, tmp_path: Path) -> AsyncIterator[Pair]:
    namespace = await asyncio.to_thread(new_namespace, cluster)
    alpha_account, sentinel_account = Credentials.generate(), Credentials.generate()
    blocks = await bootstrap.prepare(servers.jazz.url, (servers.etcd.url,), alpha_account, sentinel_account)
    sentinel = Sentinel(
        settings(
            cluster,
            namespace,
            tmp_path / "state",
            replica_name=SENTINEL_NAME,
            control_block_id=blocks.sentinel,
            account_id=sentinel_account.account_id,
            agent_secret=sentinel_account.agent_secret,
            sync_server_url=servers.jazz.url,
            etcd_hosts=(servers.etcd.url,),
        )
    )
    task = asyncio.create_task(sentinel.run())
    chosen = alpha_settings(servers, alpha_account, blocks.alpha).model_copy(update={"namespace": namespace})
    async with started(chosen) as alpha:
        endpoint = str(alpha.context.node.account.profile["endpoints"]["internal"])
        nothing: Any = None
        alpha_cluster = AlphaCluster(
            servers, alpha_account, sentinel_account, blocks, Orders(), nothing, alpha, endpoint
        )
        async with asyncio.timeout(60):
            await bootstrap.until_granted(alpha, blocks.sentinel)
        alpha_cluster.lead()
        try:
            yield Pair(alpha_cluster, cluster, namespace)
        finally:
            await alpha_cluster.stop_leading()
            sentinel.stop()
            await task


async def test_an_approved_image_becomes_live_objects_that_are_kept(pair: Pair, servers: Servers) -> None:
    """Preview, approval, Secret with the account's secret, Deployment; deleted objects are restored."""
    greeting = "registry.reside.internal/contracts/greeting.v1"
    await servers.push("contracts/greeting.v1", type="contract", permissions={"greet": {}}, methods={"greet": {}})
    about = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    for version in (1, 2):
        implements = {"greeting": {"identity": greeting}}
        image = f"examples/greeter:v{version}"
        await servers.push(image, type="replica", info=about, implementations=implements)
    admin = await pair.alpha.admin()
    number = await admin.create("examples/greeter:v1")
    request = await admin.settled(number)
    assert request.preview is not None, request.error_message
    assert {(change["object"], change["action"]) for change in request.preview["changes"]} == {
        ("Deployment/greeter-1", "create"),
        ("Secret/greeter", "create"),
        ("Service/greeter", "create"),
    }
    await admin.approve(number)
    deployment = await pair.wait("Deployment/greeter-1")
    secret = await pair.wait("Secret/greeter")
    assert base64.b64decode(secret["data"]["agentSecret"]).startswith(b"sealerSecret_z")
    replica = await pair.alpha.replica("greeter")
    assert replica.agent_secret is not None
    source = await pair.alpha.alpha.node.load_map(replica.agent_secret)
    await eventually("that the secret is forgotten", lambda: "value" not in source, within=60)
    await asyncio.to_thread(
        kubectl, pair.info, "-n", pair.namespace, "delete", "secret/greeter", "deployment/greeter-1", "--wait=false"
    )

    async def uids() -> set[str]:
        found = [await pair.live(key) for key in ("Secret/greeter", "Deployment/greeter-1")]
        return {live["metadata"]["uid"] for live in found if live}

    old = {secret["metadata"]["uid"], deployment["metadata"]["uid"]}
    await eventually("two other objects", uids, lambda now: len(now - old) == 2, within=60)
    again = await pair.wait("Secret/greeter")
    assert again["data"] == secret["data"]

    await admin.load("examples/greeter:v2", replica_id=replica.id)
    await pair.wait("Deployment/greeter-2")
    assert await pair.live("Deployment/greeter-1"), "the old version runs on until the new one is up"
    await pair.alpha.has_status("greeter", "starting", "starting")
