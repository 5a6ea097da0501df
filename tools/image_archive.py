"""Write images of a registry's storage into one archive, an OCI image layout in which shared layers are there once.

`reside images push --archive` reads it, and so does `ctr images import`, once it is decompressed. The same images give
the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from gzip import GzipFile
from io import BytesIO
from tarfile import GNU_FORMAT, TarFile, TarInfo
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_LAYOUT: Final = {"imageLayoutVersion": "1.0.0"}
_LEVEL: Final = 6
_EXECUTABLE: Final = 0o755
_PLAIN: Final = 0o644


class DamagedStorageError(Exception):
    """The registry's storage lacks a part of an image, or has another content under its digest."""


@contextmanager
def archive(path: Path) -> Iterator[TarFile]:
    """Open a new compressed archive, whose bytes depend on its members' names and contents alone."""
    with (
        path.open("wb") as file,
        GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        TarFile(fileobj=packed, mode="w", format=GNU_FORMAT) as tar,
    ):
        yield tar


def add_file(tar: TarFile, name: str, source: Path, *, executable: bool = False) -> None:
    """Add a file under a name, without its owner and times."""
    info = TarInfo(name)
    info.size = source.stat().st_size
    info.mode = _EXECUTABLE if executable else _PLAIN
    with source.open("rb") as content:
        tar.addfile(info, content)


def add_bytes(tar: TarFile, name: str, content: bytes) -> None:
    """Add a file with this content."""
    info = TarInfo(name)
    info.size, info.mode = len(content), _PLAIN
    tar.addfile(info, BytesIO(content))


class Storage:
    """The blobs of a registry (Docker's `distribution`) in a folder.

    Args:
        folder: the root folder of its file system driver.
    """

    def __init__(self, folder: Path) -> None:
        self._blobs = folder / "docker/registry/v2/blobs/sha256"

    def path(self, digest: str) -> Path:
        """Return the file of a blob.

        Raises:
            DamagedStorageError: there is none.
        """
        algorithm, _, hexadecimal = digest.partition(":")
        found = self._blobs / hexadecimal[:2] / hexadecimal / "data"
        if algorithm != "sha256" or not found.is_file():
            raise DamagedStorageError(f"the registry's storage has no {digest}: build the images again")
        return found

    def document(self, digest: str) -> dict[str, Any]:
        """Return a manifest.

        Raises:
            DamagedStorageError: it is missing, or not what its digest says.
        """
        content = self.path(digest).read_bytes()
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
            raise DamagedStorageError(f"the registry's storage has another content as {digest}: build the images again")
        found: dict[str, Any] = json.loads(content)
        return found


def write(path: Path, storage: Storage, images: Mapping[str, str]) -> None:
    """Write images into a new archive.

    Args:
        path: the archive.
        storage: where the registry keeps them.
        images: name with a tag → digest of the manifest.

    Raises:
        DamagedStorageError: a part of an image is missing.
    """
    blobs: dict[str, Path] = {}
    entries = []
    for name, digest in sorted(images.items()):
        manifest = storage.document(digest)
        for each in [digest, manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]:
            blobs[each] = storage.path(each)
        entries.append(
            {
                "mediaType": manifest["mediaType"],
                "digest": digest,
                "size": blobs[digest].stat().st_size,
                "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
            }
        )
    index = {"schemaVersion": 2, "manifests": entries}
    with archive(path) as tar:
        add_bytes(tar, "oci-layout", json.dumps(_LAYOUT).encode())
        add_bytes(tar, "index.json", json.dumps(index, indent=1).encode())
        for digest, source in sorted(blobs.items()):
            add_file(tar, f"blobs/{digest.replace(':', '/')}", source)
