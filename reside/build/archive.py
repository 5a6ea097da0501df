"""Takes images out of a Docker daemon as they are, to push them without its compression.

A daemon compresses every layer that it pushes, on one core and at a few megabytes a second; a registry on the same
machine gains nothing by it, and the nodes would have to undo it. So images for such a registry are saved (one archive
for all of them, in which shared layers stand once) and pushed as plain tars.

Invariant: a layer's digest is the one that the image's own configuration gives it (``rootfs.diff_ids``), so a registry
that is given other bytes refuses them.
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
        """A reader at the layer's beginning."""
        return self._open()

    @contextmanager
    def _open(self) -> Iterator[BinaryIO]:
        with tarfile.open(self.archive) as tar:
            file = tar.extractfile(self.member)
            if file is None:
                raise LocalError(f"{self.member} is no file in Docker's archive")
            with file:
                yield file  # type: ignore[misc]  # tarfile's reader is a BinaryIO in all but its declared type


@dataclass(frozen=True)
class SavedImage:
    """An image's configuration, byte by byte, and its layers, lowest first."""

    config: bytes
    layers: tuple[SavedLayer, ...]


@contextmanager
def saved_images(daemon: DockerClient, names: Sequence[str], scratch: Path) -> Iterator[dict[str, SavedImage]]:
    """Images by the names that the daemon knows them by, for as long as the block.

    Args:
        daemon: Has the images.
        names: With their tags.
        scratch: A folder with room for all layers.

    Raises:
        LocalError: the daemon's archive can't be read.
    """
    with tempfile.NamedTemporaryFile(dir=scratch, suffix=".tar") as file:
        # The SDK's own get_image takes one name only, and would save shared layers once for each image.
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
    """The images of an archive that ``docker save`` wrote, by name and tag.

    Raises:
        LocalError: it is not one.
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
    """A member, or the one that it links to: a layer of several images stands in the archive once."""
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
