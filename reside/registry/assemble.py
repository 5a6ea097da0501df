"""Build the documents of new images: labels only, given layers, or another image plus one layer.

Invariant: the output is deterministic. It contains no timestamps, so pushing twice gives one digest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.registry.documents import (
    DOCKER_LAYER,
    DOCKER_MANIFEST,
    OCI_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    Platform,
    digest_of,
    parse_object,
)
from reside.registry.errors import MalformedImage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Extension:
    """What an image adds to its base image, in the terms of a Dockerfile.

    Args:
        labels: added to the labels of the base image.
        working_directory: `WORKDIR`; empty: inherited from the base image.
        entrypoint: `ENTRYPOINT`, which also resets `CMD`, as in Docker; empty: both are inherited.
        author: `created_by` of the history entry.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""
    entrypoint: tuple[str, ...] = ()
    author: str = ""


def label_image(labels: dict[str, str], platform: Platform) -> tuple[bytes, bytes]:
    """Return configuration and manifest of an image without layers that carries `labels`."""
    config = _canonical(
        {
            "architecture": platform.architecture,
            "os": platform.os,
            "config": {"Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": []},
        }
    )
    return config, image_manifest(config, ())


def image_manifest(config: bytes, layers: Sequence[tuple[str, int]]) -> bytes:
    """Return the manifest of an image; `layers` are digest and size of uncompressed tars."""
    return _canonical(
        {
            "schemaVersion": 2,
            "mediaType": OCI_MANIFEST,
            "config": {"mediaType": OCI_CONFIG, "digest": digest_of(config), "size": len(config)},
            "layers": [{"mediaType": OCI_LAYER, "digest": digest, "size": size} for digest, size in layers],
        }
    )


def extended_image(
    image: str, manifest: bytes, config: bytes, layer: tuple[str, int] | None, extension: Extension
) -> tuple[bytes, bytes, str]:
    """Return configuration, manifest and media type of a base image plus `extension` and at most one layer.

    The result refers to the base image's layers unchanged and uses its media types (Docker or OCI).

    Raises:
        MalformedImage: the documents of the base image can't be read, or do not list its layers.
    """
    below, settings = parse_object(image, manifest), parse_object(image, config)
    docker = below.get("mediaType") == DOCKER_MANIFEST
    inner = {
        **(settings.get("config") or {}),
        **({"WorkingDir": extension.working_directory} if extension.working_directory else {}),
        **({"Entrypoint": list(extension.entrypoint), "Cmd": None} if extension.entrypoint else {}),
        "Labels": {**((settings.get("config") or {}).get("Labels") or {}), **extension.labels},
    }
    rootfs = _rootfs(image, settings)
    step = {"created_by": extension.author, **({} if layer else {"empty_layer": True})}
    new = {key: value for key, value in settings.items() if key not in ("container", "container_config", "created")}
    new |= {
        "config": inner,
        "rootfs": {**rootfs, "diff_ids": [*rootfs["diff_ids"], *([layer[0]] if layer else [])]},
        "history": [*(settings.get("history") or ()), step],
    }
    raw = _canonical(new)
    layers = list(below["layers"])
    if layer:
        kind = DOCKER_LAYER if docker else OCI_LAYER
        layers.append({"mediaType": kind, "digest": layer[0], "size": layer[1]})
    described = {**below["config"], "digest": digest_of(raw), "size": len(raw)}
    media_type = DOCKER_MANIFEST if docker else OCI_MANIFEST
    document = {"schemaVersion": 2, "mediaType": media_type, "config": described, "layers": layers}
    return raw, _canonical(document), media_type


def _rootfs(image: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the `rootfs` of a configuration; an image without layers may omit it."""
    rootfs = settings.get("rootfs") or {"type": "layers", "diff_ids": []}
    if not isinstance(rootfs, dict) or not isinstance(rootfs.get("diff_ids"), list):
        raise MalformedImage(image, "its configuration does not list its layers: push it with a current tool")
    return rootfs


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
