"""Load requests for images whose labels are those of the first implementation: accepted, or refused with a reason.

The labels have the members that its tool wrote, with the identities of its own replicas.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from support.alpha_cluster import AlphaCluster, Client, Servers, alpha_cluster

from reside.model.constants import MANIFEST_LABEL
from reside.registry import Bytes, ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.model.entities import LoadRequest

pytestmark = pytest.mark.anyio

HOST = "ghcr.io"
ROOT = f"{HOST}/exeteres/reside"
SECRET = f"{ROOT}/contracts/secret.v1"
ALPHA = f"{ROOT}/contracts/alpha.v1"
TITLE = {"ru": {"title": "Реплика", "description": "Описание."}, "en": {"title": "Replica", "description": "Text."}}
CONTRACT = {
    "type": "contract",
    "identity": SECRET,
    "displayInfo": TITLE,
    "permissions": {
        name: {"displayInfo": TITLE}
        for name in ("definition:manage", "value:read", "value:read:all", "value:read-write")
    },
    "methods": {},
}
"""Neither schemas of parameters nor names of those that make an instance."""


def replica(name: str, **members: Any) -> dict[str, Any]:
    """Return the label of a replica, with every member that the tool always wrote."""
    info = {"name": name, "class": "long-running", "exclusive": False, "scalable": True}
    always = {"displayInfo": TITLE, "implementations": {}, "requirements": {}, "avatarPrompt": "\n  violet cloak\n"}
    return {"type": "replica", "identity": f"{ROOT}/replicas/{name}", "info": info, **always, **members}


def requires(identity: str, *permissions: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a label that requires permissions of a contract."""
    return {"requirements": {"required": {"identity": identity, "permissions": list(permissions)}}}


@pytest.fixture(scope="module")
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    async with alpha_cluster(servers) as made:
        await made.change_settings(registry_mirrors=mirrors(servers))
        yield made


@pytest.fixture(scope="module")
async def admin(cluster: AlphaCluster, servers: Servers) -> Client:
    """Return the super admin, once the replica that implements the contract runs."""
    admin = await cluster.admin()
    for contract in (CONTRACT, {**CONTRACT, "identity": ALPHA, "permissions": {"replica:read:all": {}}}):
        await push(servers, contract)
    await push(servers, replica("secret", implementations={"secret": {"identity": SECRET}}))
    await admin.approve_latest(await create(admin, f"{ROOT}/replicas/secret"))
    await cluster.has_status("secret", "running")
    return admin


def mirrors(servers: Servers) -> dict[str, str]:
    (address,) = set(servers.registry.mirrors.values())
    return {**servers.registry.mirrors, HOST: address}


async def push(servers: Servers, manifest: dict[str, Any], *, layered: bool = False) -> None:
    """Push an image with this label; with a layer, as the tool built those of replicas: without a user."""
    reference = ImageReference.parse(f"{manifest['identity']}:latest")
    labels = {MANIFEST_LABEL: base64.b64encode(json.dumps(manifest, ensure_ascii=False).encode()).decode()}
    client = RegistryClient(mirrors(servers))
    if not layered:
        await client.push_label_image(reference, labels)
        return
    config = {"os": "linux", "architecture": "amd64", "config": {"Labels": labels, "Cmd": ["bun", "src/main.ts"]}}
    await client.push_image(reference, json.dumps(config).encode(), [Bytes(b"layer")])


async def create(admin: Client, image: str) -> int:
    answer = await admin.call("create-load-request", {"wish": (await admin.create_spec(image=f"{image}:latest")).id})
    return int(answer["id"])


async def settled(servers: Servers, admin: Client, manifest: dict[str, Any], *, layered: bool = False) -> LoadRequest:
    await push(servers, manifest, layered=layered)
    return await admin.settled(await create(admin, manifest["identity"]))


async def test_the_label_of_the_replica_secret_and_its_contract_are_accepted(
    cluster: AlphaCluster, admin: Client
) -> None:
    del admin  # has loaded it
    (version,) = (await cluster.replica("secret")).versions
    assert version.implementations == {"secret": SECRET}
    assert version.display_info["ru"].title == "Реплика"


async def test_a_permission_with_a_placeholder_in_its_instance_is_accepted(servers: Servers, admin: Client) -> None:
    asked = {"name": "value:read", "instanceId": "{replica.name}", "params": {"name": "{replica.name}"}}
    request = await settled(servers, admin, replica("telegram", **requires(SECRET, asked)))
    assert request.status == "requires-approval", request.error_message
    assert request.approve_request is not None
    (permission,) = request.approve_request.requirements["required"].permissions
    assert (permission.instance_id, permission.params) == ("telegram", {"name": "telegram"})


async def test_an_empty_instance_is_none(servers: Servers, admin: Client) -> None:
    asked = {"name": "value:read:all", "instanceId": "", "params": {}}
    request = await settled(servers, admin, replica("reader", **requires(SECRET, asked)))
    assert request.status == "requires-approval", request.error_message
    assert request.approve_request is not None
    (permission,) = request.approve_request.requirements["required"].permissions
    assert permission.instance_id is None


async def test_members_for_the_build_and_for_pictures_are_ignored(servers: Servers, admin: Client) -> None:
    request = await settled(servers, admin, replica("streamer", packages=["ffmpeg"], testingPackages=["x"]))
    assert request.status == "requires-approval", request.error_message


@pytest.mark.parametrize(
    ("manifest", "layered", "reason"),
    [
        (replica("built"), True, "runs as root: set a numeric user in its Dockerfile"),
        (
            replica("seeing", **requires(ALPHA, {"name": "replica:read:all", "params": {}})),
            False,
            f"no replica implements {ALPHA}",
        ),
        (
            replica("writer", **requires(SECRET, {"name": "value:write", "params": {}})),
            False,
            "has no permission 'value:write'; it has definition:manage, value:read, value:read-write, value:read:all",
        ),
        (
            replica("keyed", implementations={"user_manager": {"identity": SECRET}}),
            False,
            "implementations.user_manager",
        ),
        (
            replica("named", info={"name": "My_Replica", "class": "oneshot", "exclusive": False, "scalable": False}),
            False,
            "info.name",
        ),
        (replica("other", memory="1Gi"), False, "memory"),
        (replica("moved", identity=f"{ROOT}/replicas/moved") | {"type": "service"}, False, "type"),
    ],
    ids=lambda value: value["info"]["name"] if isinstance(value, dict) else None,
)
async def test_what_can_not_run_is_refused_with_the_reason(
    servers: Servers, admin: Client, manifest: dict[str, Any], layered: bool, reason: str
) -> None:
    request = await settled(servers, admin, manifest, layered=layered)
    assert request.status == "invalid"
    assert reason in str(request.error_message)
