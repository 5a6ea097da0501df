"""Writes the documents of new images: one of labels only, one of given layers, one that extends another by a layer.

Equal input gives equal bytes, so pushing twice gives one digest: nothing written here holds a time.
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
    """What an image adds to the one that it stands on, as a Dockerfile would say it.

    Args:
        labels: Added to the labels below.
        working_directory: ``WORKDIR``; the one below if empty.
        entrypoint: ``ENTRYPOINT``, and the command below is dropped, as Docker does; both as below if empty.
        author: What the history names as the maker.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    working_directory: str = ""
    entrypoint: tuple[str, ...] = ()
    author: str = ""


def label_image(labels: dict[str, str], platform: Platform) -> tuple[bytes, bytes]:
    """Configuration and manifest of an image without layers that only carries ``labels``.

    Equal labels give equal bytes, so pushing twice gives one digest.
    """
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
    """The manifest of an image with this configuration and these layers: digest and size of plain tars."""
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
    """Configuration, manifest and media type of an image that has one plain layer more than another one, or none more.

    The layers below are named as they are, in the dialect (Docker or OCI) of the image below.

    Raises:
        MalformedImage: the image below has no readable documents, or its configuration does not list its layers.
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
    """What a configuration says of its layers; an image without any may leave it out."""
    rootfs = settings.get("rootfs") or {"type": "layers", "diff_ids": []}
    if not isinstance(rootfs, dict) or not isinstance(rootfs.get("diff_ids"), list):
        raise MalformedImage(image, "its configuration does not list its layers: push it with a current tool")
    return rootfs


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
