"""Alpha and the Sentinel together, both real, on a control plane: from an image to live objects and back."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from integration.sentinel.pair import Pair, new_pair
from support.alpha_cluster import Servers, run_servers
from support.deleted_values import is_deleted
from support.eventually import eventually
from support.sentinel import kubectl
from support.traces import Receiver, receiver, recording

from reside.common import tracing
from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with run_servers(tmp_path_factory.mktemp("sentinel-alpha")) as running:
        yield running


@pytest.fixture
async def pair(cluster: ClusterInfo, servers: Servers, tmp_path: Path) -> AsyncIterator[Pair]:
    async with new_pair(cluster, servers, tmp_path) as made:
        yield made


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as running, recording(running, monkeypatch):
        yield running


async def test_an_approved_image_becomes_live_objects_that_are_kept(
    pair: Pair, servers: Servers, collector: Receiver
) -> None:
    """Preview, approval, Secret with the account's secret, Deployment; deleted objects are restored.

    What the Sentinel does for the load is in the trace of the call that asked for it.
    """
    greeting = "registry.reside.internal/contracts/greeting.v1"
    await servers.push("contracts/greeting.v1", type="contract", permissions={"greet": {}}, methods={"greet": {}})
    about = {"name": "greeter", "class": "long-running", "exclusive": True, "scalable": True}
    for version in (1, 2):
        implements = {"greeting": {"identity": greeting}}
        image = f"examples/greeter:v{version}"
        await servers.push(image, type="replica", info=about, implementations=implements)
    admin = await pair.alpha.admin()
    with tracing.span("the command"):
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
    by_sentinel = {"preview a stack", "apply a stack"}
    await asyncio.to_thread(collector.wait, lambda seen: {span.name for span in seen} >= by_sentinel)
    assert {collector.trace_of(name) for name in by_sentinel} == {collector.trace_of("the command")}
    assert base64.b64decode(secret["data"]["agentSecret"]).startswith(b"sealerSecret_z")
    replica = await pair.alpha.replica("greeter")
    assert replica.agent_secret is not None
    node = pair.alpha.alpha.node
    await eventually("the deletion of the secret", partial(is_deleted, node, replica.agent_secret), within=60)
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
