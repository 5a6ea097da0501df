"""The registry client with a real registry that has a password and its own certificate authority."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.registry import PASSWORD, PrivateRegistry, private_registry

from reside.registry import Bytes, ImageReference, RegistryClient, RegistryDenied, RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
LOGICAL = "registry.reside.internal/reside"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateRegistry]:
    with private_registry(tmp_path_factory.mktemp("private")) as running:
        yield running


@pytest.fixture
def client(server: PrivateRegistry) -> RegistryClient:
    return RegistryClient({}, authorities={server.host: server.authority}, architecture="amd64")


def log_in(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a Docker configuration that of this process."""
    (folder / "config.json").write_text(text)
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))


async def test_images_are_pushed_and_read_with_the_password_and_the_authority(
    client: RegistryClient, server: PrivateRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(tmp_path, server.login, monkeypatch)
    reference = ImageReference.parse(f"{server.host}/acme/labels:v1")
    digest = await client.push_label_image(reference, {"a": "b"})
    assert await client.resolve(reference) == digest
    assert (await client.describe(reference, digest)).labels == {"a": "b"}


async def test_without_a_login_or_with_that_of_another_host_access_is_refused(
    client: RegistryClient, server: PrivateRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text in ("{}", server.login.replace(server.host, "other.example.org")):
        log_in(tmp_path, text, monkeypatch)
        with pytest.raises(RegistryDenied, match=f"docker login {server.host}") as caught:
            await client.resolve(ImageReference.parse(f"{server.host}/acme/labels:v1"))
        assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize("other", [{}, {"other.example.org": "its authority"}])
async def test_a_certificate_is_not_trusted_without_the_authority_of_its_host(
    other: dict[str, str],
    server: PrivateRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log_in(tmp_path, server.login, monkeypatch)
    authorities = dict.fromkeys(other, server.authority)
    with pytest.raises(RegistryUnavailable, match="is not trusted: name its certificate authority"):
        await RegistryClient({}, authorities=authorities).resolve(ImageReference.parse(f"{server.host}/acme/a:v1"))


async def test_images_of_an_identity_are_elsewhere_and_are_extended_there(
    server: PrivateRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(tmp_path, server.login, monkeypatch)
    client = RegistryClient(
        {},
        authorities={server.host: server.authority},
        locate=lambda identity: identity.replace(LOGICAL, f"{server.host}/acme/reside"),
        architecture="amd64",
    )
    below, above = (ImageReference.parse(f"{LOGICAL}/{name}:v1") for name in ("base", "above"))
    config = b'{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}'
    await client.push_image(below, config, [Bytes(b"layer")])
    digest = await client.push_image(above, config, [Bytes(b"layer")], below)
    await client.tag(above, "latest")
    there = ImageReference.parse(f"{server.host}/acme/reside/above:latest")
    assert client.located(above.tagged("latest")) == there
    assert await RegistryClient({}, authorities={server.host: server.authority}).resolve(there) == digest
