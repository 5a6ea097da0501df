"""Images of a registry's storage as one archive."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from tools import image_archive
from tools.image_archive import DamagedStorageError, Storage

if TYPE_CHECKING:
    from pathlib import Path


def put(folder: Path, content: bytes) -> str:
    """Store a blob as Docker's registry does; return its digest."""
    name = hashlib.sha256(content).hexdigest()
    path = folder / "docker/registry/v2/blobs/sha256" / name[:2] / name / "data"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return f"sha256:{name}"


def image(folder: Path, config: bytes, *layers: bytes) -> str:
    """Store an image; return the digest of its manifest."""
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"digest": put(folder, config)},
        "layers": [{"digest": put(folder, layer)} for layer in layers],
    }
    return put(folder, json.dumps(manifest).encode())


def test_an_archive_has_each_blob_once_under_its_digest(tmp_path: Path) -> None:
    images = {"r/b:1": image(tmp_path, b"b", b"shared", b"own"), "r/a:1": image(tmp_path, b"a", b"shared")}
    image_archive.write(tmp_path / "a.tar.gz", Storage(tmp_path), images)
    with tarfile.open(tmp_path / "a.tar.gz") as tar:
        names = tar.getnames()
        contents = {name: tar.extractfile(name).read() for name in names}  # type: ignore[union-attr] # all are files
    assert len(names) == len(set(names)) == 2 + 2 + 2 + 2
    for name, content in contents.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
    index = json.loads(contents["index.json"])["manifests"]
    assert [each["annotations"]["org.opencontainers.image.ref.name"] for each in index] == ["r/a:1", "r/b:1"]
    assert {each["digest"] for each in index} == set(images.values())
    assert json.loads(contents["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}


def test_the_bytes_do_not_depend_on_the_time_or_the_owner(tmp_path: Path) -> None:
    images = {"r/a:1": image(tmp_path, b"a", b"x")}
    image_archive.write(tmp_path / "first", Storage(tmp_path), images)
    for path in tmp_path.rglob("data"):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    image_archive.write(tmp_path / "second", Storage(tmp_path), images)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()


def test_a_storage_that_lacks_a_part_or_has_another_content_is_refused(tmp_path: Path) -> None:
    found = image(tmp_path, b"a", b"x")
    Storage(tmp_path).path(put(tmp_path, b"x")).unlink()
    with pytest.raises(DamagedStorageError, match="build the images again"):
        image_archive.write(tmp_path / "a", Storage(tmp_path), {"r/a:1": found})
    Storage(tmp_path).path(found).write_bytes(b"{}")
    with pytest.raises(DamagedStorageError, match="another content"):
        image_archive.write(tmp_path / "b", Storage(tmp_path), {"r/a:1": found})
