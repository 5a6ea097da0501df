"""The images of a release in an archive are pushed to a repository with the same digests, without a checkout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import pytest
from support.registry import NAME, registry

from reside.build.image_archive import unpack
from reside.cli import project
from reside.cli.main import run
from reside.model.errors import InvalidInput
from reside.registry import Bytes, Extension, ImageReference, RegistryClient
from tools import image_archive

if TYPE_CHECKING:
    from pathlib import Path

REPOSITORY = "ghcr.io/acme/reside"
CONTRACT = "contracts/alpha.v1"


@dataclass(frozen=True)
class Release:
    """An archive, and the digests of its images by identity."""

    archive: Path
    digests: dict[str, str]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Return an archive with an image with a layer, one that extends it, and a contract without layers."""
    folder = tmp_path_factory.mktemp("release")
    with registry(folder / "registry") as source:
        client = RegistryClient(source.mirrors, architecture="amd64")
        digests = anyio.run(_push, client)
    archive = folder / "images.tar.gz"
    storage = image_archive.Storage(folder / "registry/data")
    image_archive.write(archive, storage, {f"{name}:0.1.0": digest for name, digest in digests.items()})
    return Release(archive, digests)


async def _push(client: RegistryClient) -> dict[str, str]:
    layer = Bytes(b"a layer")
    rootfs = {"type": "layers", "diff_ids": [layer.digest]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": rootfs}).encode()
    base, alpha, contract = (_reference(path) for path in ("base", "replicas/alpha", CONTRACT))
    below = base.pinned(await client.push_image(base, config, [layer]))
    extended = await client.extend(below, alpha, Bytes(b"another layer"), Extension({"a": "b"}))
    labelled = await client.push_label_image(contract, {"io.reside.manifest": "e30="})
    return {base.identity: str(below.digest), alpha.identity: extended, contract.identity: labelled}


def _reference(path: str) -> ImageReference:
    return ImageReference.parse(f"{NAME}/reside/{path}:latest")


def test_an_archive_is_pushed_with_its_digests_and_needs_no_checkout(
    release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(project, "ROOT", tmp_path / "installed")
    monkeypatch.setenv("RESIDE_STATE", str(tmp_path / "state"))
    with registry(tmp_path / "registry") as target:
        monkeypatch.setenv("RESIDE_REGISTRY_MIRRORS", json.dumps({"ghcr.io": target.url}))
        arguments = ["images", "push", REPOSITORY, "--archive", str(release.archive), "--output", "json"]
        assert run(arguments) == 0
        events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert run(arguments) == 0, "what is there stays"
        client = RegistryClient({"ghcr.io": target.url}, architecture="amd64")
        for identity, digest in release.digests.items():
            place = ImageReference.parse(identity.replace(f"{NAME}/reside", REPOSITORY))
            assert anyio.run(client.resolve, place) == digest
    pushed = {f"{name}@{digest}" for name, digest in release.digests.items()}
    images = json.loads((tmp_path / "state/images.json").read_text())
    assert images.keys() == {"base", "alpha", "alpha.v1"}
    assert set(images.values()) == pushed
    documents = json.loads((tmp_path / "state/image-documents.json").read_text())
    assert documents["latest"].keys() == release.digests.keys()
    assert {each["text"] for each in events[:-1]} == {f"push {name}" for name in release.digests}
    assert events[-1]["event"] == "result"
    assert all(place.startswith(f"{REPOSITORY}/") for place in events[-1]["images"].values())


@pytest.mark.parametrize("kind", ["cut", "changed", "another archive", "a text"])
def test_a_damaged_archive_is_refused(release: Release, tmp_path: Path, kind: str) -> None:
    whole = release.archive.read_bytes()
    changed = tmp_path / "changed"
    with image_archive.archive(changed) as tar:
        image_archive.add_bytes(tar, f"blobs/sha256/{'a' * 64}", b"not this")
    other = tmp_path / "other"
    with image_archive.archive(other) as tar:
        image_archive.add_bytes(tar, "index.json", b"[]")
    path = tmp_path / "archive"
    contents = {"cut": whole[:-40], "changed": changed.read_bytes(), "another archive": other.read_bytes()}
    path.write_bytes(contents.get(kind, b"hello"))
    (tmp_path / "scratch").mkdir()
    with pytest.raises(InvalidInput, match="is damaged, or is not the archive of a release's images"):
        unpack(path, tmp_path / "scratch")


def test_an_archive_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"absent can't be read: No such file"):
        unpack(tmp_path / "absent", tmp_path)
