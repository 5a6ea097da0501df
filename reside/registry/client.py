"""What ReSide asks of a registry: the digest of a reference, the labels of a digest, and an image of labels only."""

from __future__ import annotations

import platform
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio

from reside.registry.assemble import Extension, extended_image, image_manifest, label_image
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
    parse_config,
    parse_manifest,
    verified,
)
from reside.registry.errors import MalformedImage, RegistryUnavailable
from reside.registry.transport import Connection, connect
from reside.registry.upload import Blob, Bytes, mount_blob, push_blob, push_manifest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from reside.registry.reference import ImageReference

DEADLINE = 60.0  # seconds for one call, retries and all platforms of an index included
PUSH_DEADLINE = 600.0  # seconds for one image with layers
_ACCEPT = {"Accept": ", ".join(ACCEPTED)}
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def node_architecture() -> str:
    """This machine's architecture in Go's words, as registries use them."""
    machine = platform.machine()
    return _GO_ARCHITECTURES.get(machine, machine)


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

    async def push_label_image(self, reference: ImageReference, labels: Mapping[str, str], *, push: bool = True) -> str:
        """Push an image without layers that carries ``labels``, under the reference's tag.

        Args:
            reference: Repository and tag.
            labels: The image's labels.
            push: Whether to push it; its digest is the same either way.

        Returns:
            the image's digest.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        config, manifest = label_image(dict(labels), self._platform)
        if not push:
            return digest_of(manifest)
        async with self._open(reference) as connection:
            await push_blob(connection, Bytes(config))
            return await push_manifest(connection, reference, manifest)

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
            for blob in (*layers, Bytes(config)):
                await push_blob(connection, blob, mount_from)
            return await push_manifest(connection, reference, manifest)

    async def extend(
        self,
        below: ImageReference,
        reference: ImageReference,
        layer: Blob | None,
        extension: Extension,
        *,
        push: bool = True,
    ) -> str:
        """Make an image of another one in the same registry and one more layer, without moving the layers below.

        Args:
            below: The other image.
            reference: Repository and tag of the new one.
            layer: A plain tar; None if only the extension differs.
            extension: What else it adds.
            push: Whether to push it; its digest is the same either way.

        Returns:
            the new image's digest.

        Raises:
            RegistryError: see `reside.registry.errors`; also if ``below`` is an index.
        """
        image = str(below)
        async with self._open(below) as connection:
            answer = await connection.send("GET", connection.url(f"manifests/{below.target}"), headers=_ACCEPT)
            document = _single(image, answer.body)
            config = verified(image, await _blob(connection, document.config), document.config)
        check_platform(image, parse_config(image, config), self._platform, layered=document.layered)
        described = (layer.digest, layer.size) if layer is not None else None
        raw, manifest, media_type = extended_image(image, answer.body, config, described, extension)
        if push:
            async with self._open(reference, PUSH_DEADLINE) as connection:
                for digest in document.layers:
                    await mount_blob(connection, digest, below.repository)
                for blob in (*([layer] if layer is not None else ()), Bytes(raw)):
                    await push_blob(connection, blob)
                await push_manifest(connection, reference, manifest, media_type)
        return digest_of(manifest)

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
    return parse_config(image, verified(image, await _blob(connection, manifest.config), manifest.config))


async def _blob(connection: Connection, digest: str) -> bytes:
    return (await connection.send("GET", connection.url(f"blobs/{digest}"))).body


def _single(image: str, content: bytes) -> Manifest:
    document = parse_manifest(image, content)
    if isinstance(document, Index):
        raise MalformedImage(image, "it is an index of several platforms: name one of its images by digest")
    return document
