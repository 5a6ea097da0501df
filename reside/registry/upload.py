"""Push blobs and manifests; skip blobs that the registry has."""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, BinaryIO, Protocol
from urllib.parse import urlencode

import anyio

from reside.registry.documents import OCI_MANIFEST, digest_of
from reside.registry.errors import MalformedImage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from reside.registry.reference import ImageReference
    from reside.registry.transport import Connection

_CHUNK = 1 << 20


class Blob(Protocol):
    """Content to push; opened once for each attempt."""

    @property
    def digest(self) -> str:
        """The content address (SHA-256)."""

    @property
    def size(self) -> int:
        """The length in bytes."""

    def open(self) -> AbstractContextManager[BinaryIO]:
        """Open a reader at the start of the content."""


@dataclass(frozen=True)
class Bytes:
    """A blob in memory."""

    content: bytes

    @property
    def digest(self) -> str:
        """See `Blob`."""
        return digest_of(self.content)

    @property
    def size(self) -> int:
        """See `Blob`."""
        return len(self.content)

    def open(self) -> BinaryIO:
        """See `Blob`."""
        return io.BytesIO(self.content)


@dataclass(frozen=True)
class FileBlob:
    """A blob in a file; use `of` to create one."""

    path: Path
    digest: str
    size: int

    @staticmethod
    def of(path: Path) -> FileBlob:
        """Return the blob of a file's content."""
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileBlob(path, f"sha256:{digest}", path.stat().st_size)

    def open(self) -> BinaryIO:
        """See `Blob`."""
        return self.path.open("rb")


async def push_blob(connection: Connection, blob: Blob, mount_from: str | None = None) -> None:
    """Upload a blob unless the registry has it; mount it from repository `mount_from` if possible."""
    present = await connection.send("HEAD", connection.url(f"blobs/{blob.digest}"), missing_is_fine=True)
    if present.status != HTTPStatus.NOT_FOUND:
        return
    mount = f"?{urlencode({'mount': blob.digest, 'from': mount_from})}" if mount_from else ""
    started = await connection.send("POST", connection.url(f"blobs/uploads/{mount}"))
    if started.status == HTTPStatus.CREATED:
        return  # mounted
    location = started.headers.get("Location")
    if location is None:
        raise MalformedImage(
            connection.image, "the registry returned no upload location: check that the host is a registry"
        )
    target = connection.join(location)
    separator = "&" if "?" in target else "?"
    await connection.send(
        "PUT",
        f"{target}{separator}{urlencode({'digest': blob.digest})}",
        headers={"Content-Type": "application/octet-stream", "Content-Length": str(blob.size)},
        content=lambda: _chunks(blob),
    )


async def mount_blob(connection: Connection, digest: str, source: str) -> None:
    """Mount a blob of another repository of the same registry into this one.

    Raises:
        RegistryError: see `reside.registry.errors`; also if the registry refuses the mount.
    """
    present = await connection.send("HEAD", connection.url(f"blobs/{digest}"), missing_is_fine=True)
    if present.status != HTTPStatus.NOT_FOUND:
        return
    query = urlencode({"mount": digest, "from": source})
    answer = await connection.send("POST", connection.url(f"blobs/uploads/?{query}"))
    if answer.status != HTTPStatus.CREATED:
        raise MalformedImage(
            connection.image, f"the registry refuses to mount a layer of {source}: build the image with Docker"
        )


async def push_manifest(
    connection: Connection, reference: ImageReference, manifest: bytes, media_type: str = OCI_MANIFEST
) -> str:
    """Push a manifest under the reference's tag, after its blobs; return the digest."""
    digest = digest_of(manifest)
    url = connection.url(f"manifests/{reference.tag or digest}")
    await connection.send("PUT", url, headers={"Content-Type": media_type}, content=manifest)
    return digest


async def _chunks(blob: Blob) -> AsyncIterator[bytes]:
    """Yield the blob's content, read in a thread."""
    with blob.open() as file:
        while chunk := await anyio.to_thread.run_sync(file.read, _CHUNK):
            yield chunk
