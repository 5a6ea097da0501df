"""Images that Docker built, exported: with them, a further registry gets the images without Docker.

The cache contains a folder for each image: its configuration, its layers, and their sizes. A layer that
several images share is one file with several links. See `reside.build.cache` for the life of a folder.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from reside.build import cache
from reside.build.archive import SavedImage
from reside.registry import FileBlob

if TYPE_CHECKING:
    from pathlib import Path

_KIND = "export"
_CONFIG = "config.json"
_SIZES = "sizes.json"


def find(tag: str) -> SavedImage | None:
    """Return an exported image by the tag computed from its inputs; None if it is missing or incomplete."""
    folder = cache.find(_KIND, tag)
    if folder is None:
        return None
    try:
        config = (folder / _CONFIG).read_bytes()
        digests = json.loads(config)["rootfs"]["diff_ids"]
        sizes = json.loads((folder / _SIZES).read_bytes())
        layers = [FileBlob(folder / digest, digest, sizes[digest]) for digest in digests]
        complete = all(layer.path.stat().st_size == layer.size for layer in layers)
    except (FileNotFoundError, KeyError, ValueError):
        return None  # the machine lost power before all was on disk, or another build has removed the folder
    return SavedImage(config, tuple(layers)) if complete else None


def keep(tag: str, image: SavedImage) -> None:
    """Add an exported image. Its layers must be on the file system of the cache."""
    cache.replace(_KIND, tag, lambda folder: _write(folder, image))


def _write(folder: Path, image: SavedImage) -> None:
    for layer in image.layers:
        if not (folder / layer.digest).exists():  # an image may have an empty layer twice
            os.link(layer.path, folder / layer.digest)
    (folder / _CONFIG).write_bytes(image.config)
    (folder / _SIZES).write_text(json.dumps({layer.digest: layer.size for layer in image.layers}))
