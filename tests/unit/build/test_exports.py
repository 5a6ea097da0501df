"""Exported images in the cache: complete or missing, with shared layers stored once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from images import exports
from reside.build import cache
from reside.build.archive import SavedImage
from reside.registry import FileBlob

if TYPE_CHECKING:
    from pathlib import Path

TAG = "in-0123456789abcdef"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache."""
    monkeypatch.setenv("RESIDE_CACHE", str(tmp_path))
    return cache.folder()


def _image(folder: Path, *layers: str) -> SavedImage:
    paths = [folder / f"saved-{layer}" for layer in layers]
    for path, layer in zip(paths, layers, strict=True):
        path.write_text(layer)
    blobs = tuple(FileBlob.of(path) for path in paths)
    config = {"rootfs": {"diff_ids": [blob.digest for blob in blobs]}}
    return SavedImage(json.dumps(config).encode(), blobs)


def test_an_exported_image_is_found_with_its_layers(folder: Path) -> None:
    image = _image(folder, "lower", "upper", "lower")
    exports.keep(TAG, image)
    for layer in image.layers:
        layer.path.unlink(missing_ok=True)
    found = exports.find(TAG)
    assert found is not None
    assert found.config == image.config
    assert [layer.digest for layer in found.layers] == [layer.digest for layer in image.layers]
    assert [layer.path.read_text() for layer in found.layers] == ["lower", "upper", "lower"]
    assert exports.find("in-other") is None


def test_a_layer_of_several_images_is_stored_once(folder: Path) -> None:
    shared = _image(folder, "shared")
    exports.keep("in-1", shared)
    exports.keep("in-2", shared)
    first, second = exports.find("in-1"), exports.find("in-2")
    assert first is not None
    assert second is not None
    assert first.layers[0].path.samefile(second.layers[0].path)


@pytest.mark.parametrize("name", ["config.json", "sizes.json", "layer"])
@pytest.mark.parametrize("left", [None, "", "{"])
def test_a_damaged_export_is_missing_and_replaced(folder: Path, name: str, left: str | None) -> None:
    image = _image(folder, "layer")
    exports.keep(TAG, image)
    found = exports.find(TAG)
    assert found is not None
    path = found.layers[0].path if name == "layer" else found.layers[0].path.parent / name
    path.unlink()
    if left is not None:
        path.write_text(left)
    assert exports.find(TAG) is None
    exports.keep(TAG, image)
    assert exports.find(TAG) == found
