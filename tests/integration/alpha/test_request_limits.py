"""Requests end: undecided ones expire, and images that are too large, not allowed or can't run are refused."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING

import pytest
from support.alpha_cluster import HOST
from support.eventually import eventually

from reside.alpha.loading import validate
from reside.model.constants import MANIFEST_LABEL
from reside.model.errors import Conflict
from reside.model.manifest import encode_label, parse_manifest
from reside.registry import Bytes, ImageReference, RegistryClient

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client, Servers

    from reside.model.entities import LoadRequest

pytestmark = pytest.mark.anyio

INFO = {"name": "worker", "class": "long-running", "exclusive": True, "scalable": True}


async def settled(admin: Client, image: str) -> LoadRequest:
    """Create a request for an image, and return it when it is validated."""
    return await admin.settled(await admin.create(image))


async def test_a_request_that_nobody_decides_expires_and_frees_its_name(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    await cluster.change_settings(request_expiry_hours=2 / 3600)
    number = await admin.create("examples/worker:v1")
    expired = await admin.cluster_request(number, lambda r: r.status == "rejected")
    assert expired.rejection_reason == "expired: nobody approved it within 0.000555556 h; load the image again"
    with pytest.raises(Conflict, match="is rejected"):
        await admin.call("approve-load-request", {"id": number, "revision": expired.revision or "none"})
    await cluster.change_settings(request_expiry_hours=24)
    again = await settled(admin, "examples/worker:v1")
    assert again.approve_request is not None
    assert again.approve_request.name == "worker"
    open_requests = await cluster.alpha.node.load_map(cluster.alpha.data.root["openRequests"])
    await eventually("the end of the expired request", lambda: list(open_requests) == [str(again.id)])


async def test_an_expiry_counts_from_the_creation_also_for_the_next_leader(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    request = await settled(admin, "examples/worker:v1")
    await cluster.stop_leading()
    await cluster.change_settings(request_expiry_hours=1e-9)
    cluster.lead()
    await admin.cluster_request(request.id, lambda r: r.status == "rejected")


async def test_a_label_that_is_too_long_is_refused(servers: Servers, admin: Client) -> None:
    titles = {"en": {"title": "x" * 200_000}}
    await servers.push("examples/worker:v1", type="replica", info=INFO, displayInfo=titles)
    request = await settled(admin, "examples/worker:v1")
    assert request.status == "invalid"
    assert "characters, and at most 262144 are read: shorten its manifest" in str(request.error_message)


async def test_too_many_contracts_are_refused(servers: Servers, admin: Client) -> None:
    required = {f"c{n}": {"identity": f"{HOST}/contracts/c{n}.v1", "permissions": []} for n in range(65)}
    await servers.push("examples/worker:v1", type="replica", info=INFO, requirements=required)
    request = await settled(admin, "examples/worker:v1")
    assert "names 65 contracts, and at most 64 are read" in str(request.error_message)


async def test_only_allowed_registries_are_contacted(cluster: AlphaCluster, servers: Servers, admin: Client) -> None:
    await cluster.change_settings(allowed_registries=("registry.example.org",))
    await servers.push("examples/worker:v1", type="replica", info=INFO)
    refused = f"images of registry {HOST.partition('/')[0]} may not be loaded: use registry.example.org"
    assert refused in str((await settled(admin, "examples/worker:v1")).error_message)
    await cluster.change_settings(allowed_registries=(HOST.partition("/")[0],))
    required = {"other": {"identity": "elsewhere.example.org/contracts/a.v1", "permissions": []}}
    await servers.push("examples/other:v1", type="replica", info=INFO | {"name": "other"}, requirements=required)
    message = str((await settled(admin, "examples/other:v1")).error_message)
    assert "images of registry elsewhere.example.org may not be loaded" in message
    assert (await settled(admin, "examples/worker:v1")).status == "requires-approval"


async def push_layered(servers: Servers, name: str, user: str | None) -> None:
    """Push an image with a layer whose processes run as a user."""
    reference = ImageReference.parse(f"{HOST}/examples/{name}:v1")
    label = encode_label(parse_manifest({"type": "replica", "identity": reference.identity, "info": INFO}))
    inner = {"Labels": {MANIFEST_LABEL: label}} | ({} if user is None else {"User": user})
    config = json.dumps({"os": "linux", "architecture": "amd64", "config": inner}).encode()
    await RegistryClient(servers.registry.mirrors).push_image(reference, config, [Bytes(b"layer")])


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (None, "runs as root"),
        ("0:0", "runs as root"),
        ("root", "runs as root"),
        ("app", "runs as the user 'app', whose id is not known"),
    ],
)
async def test_an_image_that_runs_as_root_is_refused(
    servers: Servers, admin: Client, user: str | None, reason: str
) -> None:
    await push_layered(servers, "rooted", user)
    request = await settled(admin, "examples/rooted:v1")
    assert request.status == "invalid"
    assert f"{reason}: set a numeric user in its Dockerfile" in str(request.error_message)


async def test_an_image_with_a_numeric_user_is_accepted(servers: Servers, admin: Client) -> None:
    await push_layered(servers, "fine", "65532:65532")
    assert (await settled(admin, "examples/fine:v1")).status == "requires-approval"


async def test_an_image_of_the_first_implementation_without_probes_is_loaded(
    cluster: AlphaCluster, servers: Servers, admin: Client
) -> None:
    earlier = {"packages": ["@reside/alpha"], "testingPackages": [], "avatarPrompt": "a heron"}
    document = {"type": "replica", "identity": f"{HOST}/examples/old", "info": INFO, "health": "none", **earlier}
    label = base64.b64encode(json.dumps(document).encode()).decode()
    await servers.push("examples/old:v1", label)
    await admin.load("examples/old:v1")
    await cluster.has_status("worker", "running")
    (version,) = (await cluster.replica("worker")).versions
    assert version.probes == "none"
    stack = await cluster.alpha.sentinel.read_desired("worker")
    assert stack is not None
    (deployment,) = [each for each in stack.objects if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert not [name for name in container if name.endswith("Probe")]


async def silent_registry() -> asyncio.Server:
    """Return a registry that accepts connections and never responds."""

    async def ignore(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read()

    return await asyncio.start_server(ignore, "127.0.0.1", 0)


async def test_a_registry_that_never_responds_delays_no_rollout_and_no_other_request(
    cluster: AlphaCluster, servers: Servers, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """b5760d8: four such requests used all workers of the leader."""
    async with await silent_registry() as server:
        port = server.sockets[0].getsockname()[1]
        mirrors = cluster.alpha.cluster.registry_mirrors | {"silent.example.org": f"http://127.0.0.1:{port}"}
        await cluster.change_settings(registry_mirrors=mirrors)
        spec = [await admin.create_spec(image=f"silent.example.org/a/b{n}:v1") for n in range(6)]
        slow = [int((await admin.call("create-load-request", {"wish": s.id}))["id"]) for s in spec]
        await servers.push("examples/worker:v1", type="replica", info=INFO)
        await admin.load("examples/worker:v1")
        await cluster.has_status("worker", "running")
        assert {(await admin.cluster_request(number, bool)).status for number in slow} == {"validating"}
        await cluster.stop_leading()
        monkeypatch.setattr(validate, "FETCH_TIMEOUT_S", 0.5)
        cluster.lead()
        for number in slow:
            assert "could not be read within 0 s" in str((await admin.settled(number)).error_message)
