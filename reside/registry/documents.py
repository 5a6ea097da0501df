"""Parse the documents of an image: OCI manifest, index and configuration. Pure functions over bytes.

Docker schema 2 and OCI documents differ in media types only; both are accepted.
Invariant: content is used only after its SHA-256 was compared with the requested digest.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from reside.registry.errors import LabelsDiffer, MalformedImage, UnsupportedPlatform

OCI_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX: Final = "application/vnd.oci.image.index.v1+json"
OCI_LAYER: Final = "application/vnd.oci.image.layer.v1.tar"
OCI_CONFIG: Final = "application/vnd.oci.image.config.v1+json"
DOCKER_MANIFEST: Final = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LAYER: Final = "application/vnd.docker.image.rootfs.diff.tar"
DOCKER_INDEX: Final = "application/vnd.docker.distribution.manifest.list.v2+json"
ACCEPTED: Final = (OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_INDEX)
MAX_PLATFORMS: Final = 32  # far more than any image has; bounds what one request can make us fetch


@dataclass(frozen=True)
class Platform:
    """Operating system and architecture (GOOS, GOARCH), such as `linux` and `amd64`."""

    os: str
    architecture: str

    def __str__(self) -> str:
        return f"{self.os}/{self.architecture}"


@dataclass(frozen=True)
class Manifest:
    """One image: the digests of its configuration and of its layers, lowest first."""

    config: str
    layers: tuple[str, ...]

    @property
    def layered(self) -> bool:
        """Whether the image has layers; an image without layers is data and never runs."""
        return bool(self.layers)


@dataclass(frozen=True)
class Index:
    """Several images for several platforms, in the index's order."""

    entries: tuple[tuple[Platform, str], ...]


@dataclass(frozen=True)
class Config:
    """Platform and labels of an image, and the user that its processes run as; empty: root."""

    platform: Platform
    labels: dict[str, str]
    user: str = ""


@dataclass(frozen=True)
class Description:
    """What an image says about itself.

    Attributes:
        labels: its labels; of an index, those common to all platforms.
        user: the user on the platform of the nodes, `uid[:gid]` or a name; empty: root.
        layered: whether it has layers; an image without layers is data and never runs.
    """

    labels: dict[str, str]
    user: str
    layered: bool


def digest_of(content: bytes) -> str:
    """Return the content address (SHA-256) of `content`."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def verified(image: str, content: bytes, digest: str) -> bytes:
    """Return `content` if it has `digest`.

    Raises:
        MalformedImage: the digest differs: the content was changed in the registry or on the way.
    """
    if digest_of(content) != digest:
        raise MalformedImage(
            image, f"the content that the registry sent does not have digest {digest}: push the image again"
        )
    return content


def parse_manifest(image: str, content: bytes) -> Manifest | Index:
    """Parse a manifest or an index.

    Raises:
        MalformedImage: it is neither.
    """
    document = parse_object(image, content)
    if isinstance(document.get("manifests"), list):
        return Index(_entries(image, document["manifests"]))
    config, layers = document.get("config"), document.get("layers")
    if not isinstance(config, dict) or not isinstance(config.get("digest"), str) or not isinstance(layers, list):
        raise MalformedImage(image, "its manifest is neither Docker schema 2 nor OCI: push it with a current tool")
    digests = tuple(str(layer["digest"]) for layer in layers if isinstance(layer, dict) and "digest" in layer)
    if len(digests) != len(layers):
        raise MalformedImage(image, "its manifest has a layer without digest: push it with a current tool")
    return Manifest(config["digest"], digests)


def _entries(image: str, manifests: list[Any]) -> tuple[tuple[Platform, str], ...]:
    """Return platform and digest of each image of an index; skip attestations (platform `unknown`)."""
    found = []
    for entry in manifests:
        platform = entry.get("platform") if isinstance(entry, dict) else None
        if not isinstance(platform, dict) or not isinstance(entry.get("digest"), str):
            raise MalformedImage(image, "its index has an entry without platform or digest: push it again")
        if platform.get("os") != "unknown":
            found.append((Platform(str(platform.get("os")), str(platform.get("architecture"))), entry["digest"]))
    if not found or len(found) > MAX_PLATFORMS:
        raise MalformedImage(image, f"its index must have 1 to {MAX_PLATFORMS} images, and has {len(found)}")
    return tuple(found)


def parse_config(image: str, content: bytes) -> Config:
    """Parse an image's configuration.

    Raises:
        MalformedImage: it is not an image configuration, but for example that of a Helm chart.
    """
    document = parse_object(image, content)
    inner = document.get("config") or {}
    labels = (inner.get("Labels") or {}) if isinstance(inner, dict) else None
    user = (inner.get("User") or "") if isinstance(inner, dict) else ""
    if not isinstance(labels, dict) or not all(isinstance(v, str) for v in labels.values()):
        raise MalformedImage(image, "its configuration has no readable labels: build it as a container image")
    return Config(Platform(str(document.get("os", "")), str(document.get("architecture", ""))), labels, str(user))


def parse_object(image: str, content: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        MalformedImage: it is not a JSON object.
    """
    try:
        document = json.loads(content)
    except ValueError:
        raise MalformedImage(image, "the registry sent a document that is not JSON: push the image again") from None
    if not isinstance(document, dict):
        raise MalformedImage(image, "the registry sent a document that is not a JSON object: push the image again")
    return document


def check_platform(image: str, config: Config, required: Platform, *, layered: bool) -> None:
    """Refuse an image that the nodes can't run. An image without layers never runs and is accepted.

    Raises:
        UnsupportedPlatform: the image is for another platform.
    """
    if layered and config.platform != required:
        raise UnsupportedPlatform(
            image, f"it is for {config.platform}, the nodes are {required}: build it for {required}"
        )


def common_labels(image: str, configs: dict[Platform, dict[str, str]], required: Platform) -> dict[str, str]:
    """Return the labels of an index, which must be equal on all platforms.

    Raises:
        UnsupportedPlatform: the index has no image for the required platform.
        LabelsDiffer: the labels of two platforms differ.
    """
    if required not in configs:
        present = ", ".join(sorted(str(platform) for platform in configs))
        raise UnsupportedPlatform(image, f"it has no image for {required}, only for {present}: build it for {required}")
    labels = configs[required]
    for platform, other in configs.items():
        if other != labels:
            names = ", ".join(sorted(k for k in labels.keys() | other.keys() if labels.get(k) != other.get(k)))
            raise LabelsDiffer(
                image, f"{platform} and {required} carry different labels ({names}): build all platforms in one run"
            )
    return labels
