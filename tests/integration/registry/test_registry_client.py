"""The registry client with a real registry: digests, labels, label images, and bad images."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from support.ports import free_port
from support.registry import NAME, Registry, registry

from reside.registry import (
    ImageNotFound,
    ImageReference,
    LabelsDiffer,
    MalformedImage,
    RegistryClient,
    RegistryUnavailable,
    Snapshot,
    UnsupportedPlatform,
)
from reside.registry.documents import DOCKER_INDEX, DOCKER_MANIFEST, OCI_INDEX, OCI_MANIFEST, digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def client(server: Registry) -> RegistryClient:
    return RegistryClient(server.mirrors, architecture="amd64")


def reference(path: str) -> ImageReference:
    return ImageReference.parse(f"{NAME}/{path}")


class Raw:
    """Pushes documents as they are, including invalid ones."""

    def __init__(self, server: Registry, repository: str) -> None:
        self._base = f"{server.url}/v2/{repository}"
        self._client = httpx2.Client(trust_env=False)

    def blob(self, content: bytes) -> dict[str, Any]:
        """Upload content; return its descriptor."""
        location = self._client.post(f"{self._base}/blobs/uploads/").headers["Location"]
        digest = digest_of(content)
        self._client.put(location, params=dict(httpx2.URL(location).params) | {"digest": digest}, content=content)
        return {"digest": digest, "size": len(content), "mediaType": "application/octet-stream"}

    def manifest(self, tag: str, media_type: str, document: dict[str, Any]) -> dict[str, Any]:
        """Upload a document under a tag; return its descriptor."""
        content = json.dumps({"schemaVersion": 2, "mediaType": media_type} | document).encode()
        answer = self._client.put(
            f"{self._base}/manifests/{tag}", content=content, headers={"Content-Type": media_type}
        )
        assert answer.status_code == 201, answer.text
        return {"digest": digest_of(content), "size": len(content), "mediaType": media_type}

    def image(self, tag: str, media_type: str, architecture: str, labels: dict[str, str] | None) -> dict[str, Any]:
        """Upload an image of one layer; return its descriptor."""
        config = {"os": "linux", "architecture": architecture, "config": {"Labels": labels}}
        document = {"config": self.blob(json.dumps(config).encode()), "layers": [self.blob(b"layer")]}
        return self.manifest(tag, media_type, document)

    def index(self, tag: str, media_type: str, images: dict[str, dict[str, Any]]) -> str:
        """Upload an index, architecture → descriptor; return its digest."""
        entries = [e | {"platform": {"os": "linux", "architecture": a}} for a, e in images.items()]
        digest: str = self.manifest(tag, media_type, {"manifests": entries})["digest"]
        return digest


async def test_a_label_image_round_trips_and_always_has_the_same_digest(client: RegistryClient) -> None:
    image = reference("contracts/greeting.v1:v1")
    digest = await client.push_label_image(image, {"key": "välue"})
    assert await client.resolve(image) == digest
    assert (await client.describe(image, digest)).labels == {"key": "välue"}
    assert await client.push_label_image(image.tagged("again"), {"key": "välue"}) == digest


async def test_a_label_image_is_valid_for_every_architecture(server: Registry, client: RegistryClient) -> None:
    image = reference("contracts/any")
    digest = await client.push_label_image(image, {"a": "b"})
    assert (await RegistryClient(server.mirrors, architecture="riscv64").describe(image, digest)).labels == {"a": "b"}


@pytest.mark.parametrize("media_type", [OCI_MANIFEST, DOCKER_MANIFEST])
async def test_both_formats_of_an_image_are_read(server: Registry, client: RegistryClient, media_type: str) -> None:
    pushed = Raw(server, "dialects").image("v1", media_type, "amd64", {"a": "b"})
    digest = await client.resolve(reference("dialects:v1"))
    assert digest == pushed["digest"]
    assert (await client.describe(reference("dialects"), digest)).labels == {"a": "b"}


@pytest.mark.parametrize(("outer", "inner"), [(OCI_INDEX, OCI_MANIFEST), (DOCKER_INDEX, DOCKER_MANIFEST)])
async def test_an_index_has_its_own_digest_and_the_labels_that_all_platforms_carry(
    server: Registry, client: RegistryClient, outer: str, inner: str
) -> None:
    raw = Raw(server, "index")
    images = {a: raw.image(a, inner, a, {"a": "b"}) for a in ("amd64", "arm64")}
    digest = raw.index("v1", outer, images)
    assert await client.resolve(reference("index:v1")) == digest
    assert (await client.describe(reference("index"), digest)).labels == {"a": "b"}


async def test_an_index_with_differing_labels_is_refused(server: Registry, client: RegistryClient) -> None:
    raw = Raw(server, "differing")
    images = {a: raw.image(a, OCI_MANIFEST, a, {"a": a}) for a in ("amd64", "arm64")}
    digest = raw.index("v1", OCI_INDEX, images)
    with pytest.raises(LabelsDiffer, match="build all platforms in one run"):
        await client.describe(reference("differing"), digest)


async def test_an_image_of_another_architecture_is_refused(server: Registry, client: RegistryClient) -> None:
    raw = Raw(server, "foreign")
    single = raw.image("v1", OCI_MANIFEST, "arm64", {})
    with pytest.raises(UnsupportedPlatform, match="it is for linux/arm64, the nodes are linux/amd64"):
        await client.describe(reference("foreign"), single["digest"])
    digest = raw.index("v2", OCI_INDEX, {"arm64": single})
    with pytest.raises(UnsupportedPlatform, match="only for linux/arm64"):
        await client.describe(reference("foreign"), digest)


async def test_an_image_without_labels_has_none(server: Registry, client: RegistryClient) -> None:
    pushed = Raw(server, "plain").image("v1", OCI_MANIFEST, "amd64", None)
    assert (await client.describe(reference("plain"), pushed["digest"])).labels == {}


async def test_an_artifact_that_is_no_container_image_has_no_labels_for_a_node(
    server: Registry, client: RegistryClient
) -> None:
    raw = Raw(server, "chart")
    pushed = raw.manifest("v1", OCI_MANIFEST, {"config": raw.blob(b"not json"), "layers": [raw.blob(b"x")]})
    with pytest.raises(MalformedImage, match=r"registry\.reside\.internal/chart@sha256:"):
        await client.describe(reference("chart"), pushed["digest"])


@pytest.mark.parametrize("target", ["nowhere:v1", "plain:missing", "plain@sha256:" + "0" * 64])
async def test_a_missing_image_is_named(server: Registry, client: RegistryClient, target: str) -> None:
    Raw(server, "plain").image("v1", OCI_MANIFEST, "amd64", None)
    with pytest.raises(ImageNotFound, match=f"{NAME}/{target}.*check name and tag, or push it"):
        await client.resolve(reference(target))


async def test_an_unreachable_registry_is_unavailable_and_named() -> None:
    client = RegistryClient({NAME: f"http://127.0.0.1:{free_port()}"})
    with pytest.raises(RegistryUnavailable, match=r"can't be reached.*then try again"):
        await client.resolve(reference("a:v1"))


async def test_a_registry_that_does_not_exist_is_unavailable_and_named() -> None:
    with pytest.raises(RegistryUnavailable, match=r"'registry\.invalid'.*check its name"):
        await RegistryClient({}).resolve(ImageReference.parse("registry.invalid/a:v1"))


async def test_another_tag_refers_to_the_same_image(server: Registry, client: RegistryClient) -> None:
    pushed = Raw(server, "tagged").image("v1", DOCKER_MANIFEST, "amd64", {"a": "b"})
    await client.tag(reference("tagged:v1"), "latest")
    assert await client.resolve(reference("tagged")) == pushed["digest"]


async def test_a_snapshot_answers_for_its_images_where_their_registry_is_not_reached(
    server: Registry, client: RegistryClient
) -> None:
    contract, two = reference("a/contract"), reference("a/two")
    digest = await client.push_label_image(contract, {"io.reside.manifest": "{}"})
    raw = Raw(server, "a/two")
    images = {arch: raw.image(arch, OCI_MANIFEST, arch, {"a": "1"}) for arch in ("amd64", "arm64")}
    index = raw.index("latest", OCI_INDEX, images)
    kept = await client.snapshot([contract.pinned(digest), two])
    away = {NAME: f"http://127.0.0.1:{free_port()}"}
    offline = RegistryClient(away, architecture="amd64", snapshot=Snapshot.from_json(kept.to_json()))
    for image, known in ((contract, digest), (two, index)):
        assert await offline.resolve(image) == known
        assert await offline.resolve(image.pinned(known)) == known
        assert await offline.describe(image, known) == await client.describe(image, known)
    for unknown in (contract.tagged("v2"), reference("a/other"), contract.pinned(digest_of(b"other"))):
        with pytest.raises(RegistryUnavailable):
            await offline.resolve(unknown)


async def test_a_tag_of_a_snapshot_does_not_count_while_the_registry_answers(client: RegistryClient) -> None:
    image = reference("a/moved")
    await client.push_label_image(image, {"v": "1"})
    kept = await client.snapshot([image])
    moved = await client.push_label_image(image, {"v": "2"})
    assert await RegistryClient(client.mirrors, architecture="amd64", snapshot=kept).resolve(image) == moved


async def test_a_snapshot_with_other_content_than_its_digests_say_is_refused(client: RegistryClient) -> None:
    image = reference("a/forged")
    digest = await client.push_label_image(image, {"v": "1"})
    forged = Snapshot({}, {digest: b'{"config": {"digest": "sha256:0"}}'})
    with pytest.raises(MalformedImage):
        await RegistryClient({}, architecture="amd64", snapshot=forged).describe(image, digest)
