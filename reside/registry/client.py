"""What ReSide asks of a registry: the digest of a reference, the labels of a digest, and an image of labels only."""

from __future__ import annotations

import io
import platform
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, BinaryIO, Protocol
from urllib.parse import urlencode

import anyio

from reside.registry.documents import (
    ACCEPTED,
    OCI_MANIFEST,
    Config,
    Index,
    Manifest,
    Platform,
    check_platform,
    common_labels,
    digest_of,
    image_manifest,
    label_image,
    parse_config,
    parse_manifest,
    verified,
)
from reside.registry.errors import MalformedImage, RegistryUnavailable
from reside.registry.transport import Connection, connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from reside.registry.reference import ImageReference

DEADLINE = 60.0  # seconds for one call, retries and all platforms of an index included
PUSH_DEADLINE = 600.0  # seconds for one image with layers
_CHUNK = 1 << 20
_ACCEPT = {"Accept": ", ".join(ACCEPTED)}
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def node_architecture() -> str:
    """This machine's architecture in Go's words, as registries use them."""
    machine = platform.machine()
    return _GO_ARCHITECTURES.get(machine, machine)


class Blob(Protocol):
    """Content to push; opened anew for each attempt."""

    @property
    def digest(self) -> str:
        """Its content address."""

    @property
    def size(self) -> int:
        """Its length in bytes."""

    def open(self) -> AbstractContextManager[BinaryIO]:
        """A reader at its beginning."""


@dataclass(frozen=True)
class _Bytes:
    """A short blob."""

    content: bytes

    @property
    def digest(self) -> str:
        return digest_of(self.content)

    @property
    def size(self) -> int:
        return len(self.content)

    def open(self) -> BinaryIO:
        return io.BytesIO(self.content)


class RegistryClient:
    """Reads and writes images.

    Args:
        mirrors: registry host → the plain address that really serves it, as
            ``{"registry.reside.internal": "http://127.0.0.1:5000"}``; other hosts are spoken to over TLS.
        architecture: of the nodes, in Go's words; this machine's unless told.
    """

    def __init__(self, mirrors: Mapping[str, str], *, architecture: str | None = None) -> None:
        self._mirrors = dict(mirrors)
        self._platform = Platform("linux", architecture or node_architecture())

    async def resolve(self, reference: ImageReference) -> str:
        """The digest of an image or of an index, which the registry is shown to have.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        async with self._open(reference) as connection:
            answer = await connection.send("GET", connection.url(f"manifests/{reference.target}"), headers=_ACCEPT)
        digest = digest_of(answer.body)
        parse_manifest(str(reference), answer.body)
        if reference.digest is not None:
            verified(str(reference), answer.body, reference.digest)
        return digest

    async def labels(self, reference: ImageReference, digest: str) -> dict[str, str]:
        """The labels of the image with this digest; of an index, those that all its platforms carry.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        pinned = reference.pinned(digest)
        image = str(pinned)
        async with self._open(pinned) as connection:
            document = await _manifest(connection, image, digest)
            if isinstance(document, Manifest):
                config = await _config(connection, image, document)
                check_platform(image, config, self._platform, layered=document.layered)
                return config.labels
            configs: dict[Platform, dict[str, str]] = {}
            for entry, entry_digest in document.entries:
                inner = await _manifest(connection, image, entry_digest)
                if isinstance(inner, Index):
                    raise MalformedImage(image, "its index holds another index: push one index of images")
                configs[entry] = (await _config(connection, image, inner)).labels
        return common_labels(image, configs, self._platform)

    async def push_label_image(self, reference: ImageReference, labels: Mapping[str, str]) -> str:
        """Push an image without layers that carries ``labels``, under the reference's tag; returns its digest.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        config, manifest = label_image(dict(labels), self._platform)
        async with self._open(reference) as connection:
            await _push_blob(connection, _Bytes(config))
            return await _push_manifest(connection, reference, manifest)

    async def push_image(
        self, reference: ImageReference, config: bytes, layers: Sequence[Blob], mount_from: str | None = None
    ) -> str:
        """Push an image with plain (not compressed) layers; what the registry has already is not sent again.

        Not compressing is right for a registry on the same machine: gzip costs a hundred times the copy.

        Args:
            reference: Its repository and tag.
            config: The image's configuration, as Docker or OCI write it.
            layers: Tars, lowest first.
            mount_from: Another repository of the registry that may have some of the layers.

        Returns:
            the image's digest.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        manifest = image_manifest(config, [(layer.digest, layer.size) for layer in layers])
        async with self._open(reference, PUSH_DEADLINE) as connection:
            for blob in (*layers, _Bytes(config)):
                await _push_blob(connection, blob, mount_from)
            return await _push_manifest(connection, reference, manifest)

    async def config_digest(self, reference: ImageReference) -> str:
        """The digest of an image's configuration, which is its id in a Docker daemon.

        Raises:
            RegistryError: see `reside.registry.errors`; also for an index.
        """
        image = str(reference)
        async with self._open(reference) as connection:
            answer = await connection.send("GET", connection.url(f"manifests/{reference.target}"), headers=_ACCEPT)
        document = parse_manifest(image, answer.body)
        if isinstance(document, Index):
            raise MalformedImage(image, "it is an index of several platforms: name one of its images by digest")
        return document.config

    async def tag(self, reference: ImageReference, tag: str) -> None:
        """Let another tag of the same repository name the image that ``reference`` names.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        async with self._open(reference) as connection:
            answer = await connection.send("GET", connection.url(f"manifests/{reference.target}"), headers=_ACCEPT)
            await connection.send(
                "PUT",
                connection.url(f"manifests/{reference.tagged(tag).tag}"),
                headers={"Content-Type": answer.headers.get("Content-Type", OCI_MANIFEST)},
                content=answer.body,
            )

    @asynccontextmanager
    async def _open(self, reference: ImageReference, deadline: float = DEADLINE) -> AsyncIterator[Connection]:
        """A connection whose whole use has a deadline."""
        try:
            with anyio.fail_after(deadline):
                async with connect(reference, self._mirrors) as connection:
                    yield connection
        except TimeoutError:
            raise RegistryUnavailable(
                str(reference), f"registry {reference.registry!r} took more than {deadline:.0f} s: try again later"
            ) from None


async def _manifest(connection: Connection, image: str, digest: str) -> Manifest | Index:
    answer = await connection.send("GET", connection.url(f"manifests/{digest}"), headers=_ACCEPT)
    return parse_manifest(image, verified(image, answer.body, digest))


async def _config(connection: Connection, image: str, manifest: Manifest) -> Config:
    answer = await connection.send("GET", connection.url(f"blobs/{manifest.config}"))
    return parse_config(image, verified(image, answer.body, manifest.config))


async def _push_blob(connection: Connection, blob: Blob, mount_from: str | None = None) -> None:
    """Upload a blob unless the registry has it, in this repository or in the other one."""
    present = await connection.send("HEAD", connection.url(f"blobs/{blob.digest}"), missing_is_fine=True)
    if present.status != HTTPStatus.NOT_FOUND:
        return
    mount = f"?{urlencode({'mount': blob.digest, 'from': mount_from})}" if mount_from else ""
    started = await connection.send("POST", connection.url(f"blobs/uploads/{mount}"))
    if started.status == HTTPStatus.CREATED:
        return  # mounted
    target = connection.join(started.headers["Location"])
    separator = "&" if "?" in target else "?"
    await connection.send(
        "PUT",
        f"{target}{separator}{urlencode({'digest': blob.digest})}",
        headers={"Content-Type": "application/octet-stream", "Content-Length": str(blob.size)},
        content=lambda: _chunks(blob),
    )


async def _push_manifest(connection: Connection, reference: ImageReference, manifest: bytes) -> str:
    digest = digest_of(manifest)
    url = connection.url(f"manifests/{reference.tag or digest}")
    await connection.send("PUT", url, headers={"Content-Type": OCI_MANIFEST}, content=manifest)
    return digest


async def _chunks(blob: Blob) -> AsyncIterator[bytes]:
    """The blob's content, read beside the event loop."""
    with blob.open() as file:
        while chunk := await anyio.to_thread.run_sync(file.read, _CHUNK):
            yield chunk
