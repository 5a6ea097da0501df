"""Build container images from single static binaries, without a registry and without Docker.

An image is an OCI archive: a layer with the binary at its root, a configuration and an index. The build is
reproducible: the same binary always results in the same image.
"""

import hashlib
import io
import json
import platform
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class BinaryImage:
    """An image that contains one static binary.

    Args:
        reference: full name of the image with its tag.
        binary: path of the binary on this machine; in the image it is in the root folder.
    """

    reference: str
    binary: Path

    @property
    def entrypoint(self) -> str:
        """Path of the binary in the image."""
        return f"/{self.binary.name}"


@dataclass(frozen=True)
class BuiltImage:
    """The parts of an image.

    Args:
        manifest: the OCI manifest.
        blobs: layer and configuration by digest.
    """

    manifest: bytes
    blobs: dict[str, bytes]


def build(image: BinaryImage) -> BuiltImage:
    """Build the image's OCI manifest and blobs."""
    layer = _layer(image)
    config = _json(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Entrypoint": [image.entrypoint]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [_descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
        }
    )
    return BuiltImage(manifest, {_digest(blob): blob for blob in (layer, config)})


def write_archive(image: BinaryImage, archive: Path) -> None:
    """Write the image as an OCI archive (tar), readable by `ctr images import`."""
    built = build(image)
    entry = _descriptor(MANIFEST_TYPE, built.manifest)
    entry["annotations"] = {"io.containerd.image.name": image.reference}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [entry]}),
    }
    for digest, blob in {**built.blobs, _digest(built.manifest): built.manifest}.items():
        files[f"blobs/sha256/{digest.removeprefix('sha256:')}"] = blob
    with tarfile.open(archive, "w") as tar:
        for name, content in files.items():
            _add(tar, name, content, 0o644)


def binary_tag(binary: Path) -> str:
    """Return a tag that depends on the binary's content."""
    with binary.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()[:16]


def _layer(image: BinaryImage) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        _add(tar, image.binary.name, image.binary.read_bytes(), 0o755)
    return buffer.getvalue()


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    tar.addfile(member, io.BytesIO(content))


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _descriptor(media_type: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}
