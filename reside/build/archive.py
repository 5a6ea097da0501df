"""Export images from a Docker daemon, to push them uncompressed.

A daemon compresses every layer that it pushes, on one core at a few megabytes a second. A registry on the same machine
gains nothing from this, and nodes would have to decompress the layers. So images for such a registry are exported into
one archive, which contains shared layers once, and pushed as plain tars.

Invariant: the digest of a layer is the one in the image's configuration (`rootfs.diff_ids`), so that a registry refuses
any other content.
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from reside.local.errors import LocalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from docker import DockerClient


@dataclass(frozen=True)
class SavedLayer:
    """A layer inside the archive, as a plain tar."""

    digest: str
    size: int
    archive: Path
    member: str

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open a reader at the start of the layer."""
        return self._open()

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        with tarfile.open(self.archive) as tar:
            file = tar.extractfile(self.member)
            if file is None:
                raise LocalError(f"{self.member} is not a file in Docker's archive")
            with file:
                yield file  # type: ignore[misc]  # tarfile declares IO[bytes]


@dataclass(frozen=True)
class SavedImage:
    """An image: the exact bytes of its configuration, and its layers, lowest first."""

    config: bytes
    layers: tuple[SavedLayer, ...]


@contextmanager
def saved_images(daemon: DockerClient, names: Sequence[str], scratch: Path) -> Iterator[dict[str, SavedImage]]:
    """Export images; yield them by name. They are valid inside the block.

    Args:
        daemon: the daemon that has the images.
        names: names with tags.
        scratch: a folder with room for all layers.

    Raises:
        LocalError: the daemon's archive can't be read.
    """
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".tar") as file:
        # The SDK's get_image accepts a single name, and would export shared layers once for each image.
        answer = daemon.api.get(
            daemon.api._url("/images/get"),  # type: ignore[attr-defined]  # noqa: SLF001 - as above
            params={"names": list(names)},
            stream=True,
            timeout=daemon.api.timeout,
        )
        with closing(answer):
            answer.raise_for_status()
            for chunk in answer.iter_content(1 << 20):
                file.write(chunk)
        file.flush()
        yield read_archive(Path(file.name))


def read_archive(path: Path) -> dict[str, SavedImage]:
    """Read an archive in the format of `docker save`; return its images by name and tag.

    Raises:
        LocalError: the file is not such an archive.
    """
    try:
        with tarfile.open(path) as tar:
            members = {member.name: member for member in tar.getmembers()}
            listing = json.load(_read(tar, members, "manifest.json"))
            return {name: _image(path, tar, members, entry) for entry in listing for name in entry["RepoTags"] or ()}
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise LocalError(f"Docker's archive of images can't be read: {error}") from error


def _image(path: Path, tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], entry: dict[str, Any]) -> SavedImage:
    config = _read(tar, members, entry["Config"]).read()
    digests = json.loads(config)["rootfs"]["diff_ids"]
    layers = []
    for digest, name in zip(digests, entry["Layers"], strict=True):
        member = _followed(members, name)
        layers.append(SavedLayer(digest, member.size, path, member.name))
    return SavedImage(config, tuple(layers))


def _followed(members: dict[str, tarfile.TarInfo], name: str) -> tarfile.TarInfo:
    """Return a member, or the target of its link: a layer shared by several images is stored once."""
    member = members[name]
    if not member.issym():
        return member
    parts: list[str] = []
    for part in [*name.split("/")[:-1], *member.linkname.split("/")]:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return members["/".join(parts)]


def _read(tar: tarfile.TarFile, members: dict[str, tarfile.TarInfo], name: str) -> BinaryIO:
    file = tar.extractfile(members[name])
    if file is None:
        raise KeyError(name)
    return file  # type: ignore[return-value]  # see SavedLayer
