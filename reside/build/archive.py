"""Export images from a Docker daemon, to push them uncompressed.

A daemon compresses every layer that it pushes, on one core at a few megabytes a second. A registry on the same machine
gains nothing from this, and nodes would have to decompress the layers. So images for such a registry are exported in
one archive, which contains shared layers once, and pushed as plain tars.

Invariant: the digest of a layer is the one in the image's configuration (`rootfs.diff_ids`), so that a registry refuses
any other content.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from reside.local.errors import LocalError
from reside.registry import FileBlob

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from docker import DockerClient

_CHUNK = 1 << 20


@dataclass(frozen=True)
class SavedImage:
    """An image: the exact bytes of its configuration, and its layers as plain tars, lowest first."""

    config: bytes
    layers: tuple[FileBlob, ...]


def save_images(daemon: DockerClient, names: Sequence[str], folder: Path) -> dict[str, SavedImage]:
    """Export images into a folder; return them by name.

    Args:
        daemon: the daemon that has the images.
        names: names with tags.
        folder: an empty folder, which gets all layers.

    Raises:
        LocalError: the daemon's archive can't be read.
    """
    # The SDK's get_image accepts a single name, and would export shared layers once for each image.
    answer = daemon.api.get(
        daemon.api._url("/images/get"),  # type: ignore[attr-defined]  # noqa: SLF001 - as above
        params={"names": list(names)},
        stream=True,
        timeout=daemon.api.timeout,
    )
    with closing(answer):
        answer.raise_for_status()
        return read_archive(cast("BinaryIO", answer.raw), folder)


def read_archive(archive: BinaryIO, folder: Path) -> dict[str, SavedImage]:
    """Extract an archive in the format of `docker save`, which is read once; return its images by name and tag.

    Raises:
        LocalError: it is not such an archive.
    """
    files: dict[str, Path] = {}
    links: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=archive, mode="r|", bufsize=_CHUNK) as tar:
            for member in tar:
                if member.issym():
                    links[member.name] = member.linkname
                elif member.isfile():
                    files[member.name] = _extract(tar, member, folder / str(len(files)))
        files |= {name: files[_target(name, link)] for name, link in links.items()}
        listing = json.loads(files["manifest.json"].read_bytes())
        return {name: _image(files, entry) for entry in listing for name in entry["RepoTags"] or ()}
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise LocalError(f"Docker's archive of images can't be read: {error}") from error


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> Path:
    source = tar.extractfile(member)
    if source is None:
        raise KeyError(member.name)
    with source, path.open("wb") as target:
        shutil.copyfileobj(source, target, _CHUNK)
    return path


def _image(files: dict[str, Path], entry: dict[str, Any]) -> SavedImage:
    config = files[entry["Config"]].read_bytes()
    digests = json.loads(config)["rootfs"]["diff_ids"]
    paths = [files[name] for name in entry["Layers"]]
    layers = [FileBlob(path, digest, path.stat().st_size) for digest, path in zip(digests, paths, strict=True)]
    return SavedImage(config, tuple(layers))


def _target(name: str, link: str) -> str:
    """Return the target of a link: a layer shared by several images is stored once."""
    parts: list[str] = []
    for part in [*name.split("/")[:-1], *link.split("/")]:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
