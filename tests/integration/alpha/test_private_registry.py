"""Alpha loads an image of ReSide's examples from a registry with a password, its own authority and another name.

The cluster was bootstrapped without this registry, so its identities keep their names (e2e/test_bootstrap has others).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually
from support.registry import PASSWORD, PrivateRegistry, private_registry

from reside.model import constants
from reside.model.locations import located
from reside.model.manifest import encode_label, parse_manifest
from reside.registry import ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.alpha_cluster import AlphaCluster, Client

pytestmark = pytest.mark.anyio
INFO = {"name": "worker", "class": "long-running", "exclusive": False, "scalable": True}
IDENTITY = f"{constants.OWN}/examples/worker"


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateRegistry]:
    with private_registry(tmp_path_factory.mktemp("private")) as running:
        yield running


async def _push(private: PrivateRegistry, identity: str) -> str:
    repository = f"{private.host}/acme/reside"
    client = RegistryClient(
        {}, authorities={private.host: private.authority}, locate=lambda name: located(name, repository)
    )
    label = encode_label(parse_manifest({"type": "replica", "identity": identity, "info": INFO}))
    return await client.push_label_image(ImageReference.parse(identity), {constants.MANIFEST_LABEL: label})


async def test_an_image_is_loaded_from_the_clusters_repository(
    cluster: AlphaCluster,
    admin: Client,
    private: PrivateRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    repository = f"{private.host}/acme/reside"
    await cluster.change_settings(image_repository=repository, registry_authorities={private.host: private.authority})
    (tmp_path / "config.json").write_text("{}")
    refused = await admin.settled(await _requested(admin, f"{IDENTITY}:latest"))
    assert f"docker login {private.host}" in str(refused.error_message)

    (tmp_path / "config.json").write_text(private.login)
    digest = await _push(private, IDENTITY)
    request = await admin.approve_latest(await _requested(admin, f"{repository}/examples/worker:latest"))
    assert request.approve_request is not None
    assert (request.approve_request.identity, request.approve_request.digest) == (IDENTITY, digest)
    objects = await eventually("the worker's stack", lambda: declared(cluster))
    (container,) = objects["Deployment/worker-1"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"{repository}/examples/worker@{digest}"
    assert PASSWORD not in str(refused.error_message)


async def test_an_image_in_the_repository_may_not_have_the_identity_of_another(
    cluster: AlphaCluster,
    admin: Client,
    private: PrivateRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "config.json").write_text(private.login)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    await cluster.change_settings(
        image_repository=f"{private.host}/acme/reside", registry_authorities={private.host: private.authority}
    )
    await _push(private, IDENTITY)
    client = RegistryClient({}, authorities={private.host: private.authority})
    label = encode_label(parse_manifest({"type": "replica", "identity": IDENTITY, "info": INFO}))
    impostor = ImageReference.parse(f"{private.host}/acme/reside/examples/impostor:latest")
    await client.push_label_image(impostor, {constants.MANIFEST_LABEL: label})
    refused = await admin.settled(await _requested(admin, str(impostor)))
    assert "identity" in str(refused.error_message)


async def declared(cluster: AlphaCluster) -> dict[str, Any]:
    """Return the declared objects of the worker by `Kind/name`; empty as long as it has no stack."""
    stack = await cluster.alpha.sentinel.read_desired("worker")
    return {} if stack is None else dict(zip(stack.keys(), stack.objects, strict=True))


async def _requested(admin: Client, image: str) -> int:
    spec = await admin.create_spec(image=image)
    return int((await admin.call("create-load-request", {"wish": spec.id}))["id"])
