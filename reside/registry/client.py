"""The registry client: resolve references, read labels, push and extend images."""

from __future__ import annotations

import platform
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio

from reside.registry.assemble import Extension, extended_image, image_manifest, label_image
from reside.registry.documents import (
    ACCEPTED,
    OCI_MANIFEST,
    Config,
    Description,
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
from reside.registry.reference import ImageReference
from reside.registry.snapshot import Snapshot
from reside.registry.transport import Connection, connect
from reside.registry.upload import Blob, Bytes, mount_blob, push_blob, push_manifest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

DEADLINE = 60.0  # seconds for one call, retries and all platforms of an index included
PUSH_DEADLINE = 600.0  # seconds for one image with layers
_ACCEPT = {"Accept": ", ".join(ACCEPTED)}
_GO_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def node_architecture() -> str:
    """Return this machine's architecture as registries name it (GOARCH)."""
    machine = platform.machine()
    return _GO_ARCHITECTURES.get(machine, machine)


class RegistryClient:
    """Read and write images.

    Args:
        mirrors: registry host → plain HTTP address that serves it, such as
            `{"registry.reside.internal": "http://127.0.0.1:5000"}`; other hosts are contacted over TLS.
        authorities: registry host → PEM document with its own certificate authority.
        locate: returns the name `host/path` under which the images of an identity are; None: under the identity.
        architecture: GOARCH of the Kubernetes nodes; None: this machine's.
        snapshot: documents that need no registry; tags in it count while the registry can't be reached.
    """

    def __init__(
        self,
        mirrors: Mapping[str, str],
        *,
        authorities: Mapping[str, str] | None = None,
        locate: Callable[[str], str] | None = None,
        architecture: str | None = None,
        snapshot: Snapshot | None = None,
    ) -> None:
        self._mirrors = dict(mirrors)
        self._authorities = dict(authorities or {})
        self._locate = locate
        self._snapshot = snapshot or Snapshot()
        self._platform = Platform("linux", architecture or node_architecture())

    @property
    def mirrors(self) -> Mapping[str, str]:
        """Registry host → address of its mirror."""
        return self._mirrors

    def located(self, reference: ImageReference) -> ImageReference:
        """Return the reference under which this client reads and writes an image."""
        if self._locate is None:
            return reference
        where = ImageReference.parse(self._locate(reference.identity))
        return replace(where, tag=reference.tag, digest=reference.digest)

    async def resolve(self, reference: ImageReference) -> str:
        """Return the digest of an image or index after checking that the registry has it.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        known = self._snapshot.digest_of(reference)
        if known is not None and reference.digest is not None:
            return known
        try:
            return await self._resolve(self.located(reference))
        except RegistryUnavailable:
            if known is None:
                raise
            return known

    async def _resolve(self, reference: ImageReference) -> str:
        async with self._open(reference) as connection:
            answer = await connection.send("GET", connection.url(f"manifests/{reference.target}"), headers=_ACCEPT)
        digest = digest_of(answer.body)
        parse_manifest(str(reference), answer.body)
        if reference.digest is not None:
            verified(str(reference), answer.body, reference.digest)
        return digest

    async def snapshot(self, references: Iterable[ImageReference]) -> Snapshot:
        """Return what these images, named by digest, say about themselves.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        latest: dict[str, str] = {}
        documents: dict[str, bytes] = {}
        for reference in references:
            digest = reference.digest or await self.resolve(reference)
            latest[reference.identity] = digest
            pinned = self.located(reference).pinned(digest)
            async with self._open(pinned) as connection:
                await _Source(connection, str(pinned), documents).keep(digest)
        return Snapshot(latest, documents)

    async def describe(self, reference: ImageReference, digest: str) -> Description:
        """Return what the image with this digest says about itself; the platforms of an index have equal labels.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        pinned = self.located(reference).pinned(digest)
        image = str(pinned)
        async with self._open(pinned) as connection:
            source = _Source(connection, image, dict(self._snapshot.documents))
            document = await source.manifest(digest)
            if isinstance(document, Manifest):
                config = await source.config(document)
                check_platform(image, config, self._platform, layered=document.layered)
                return Description(config.labels, config.user, document.layered)
            configs: dict[Platform, Config] = {}
            layered = False
            for entry, entry_digest in document.entries:
                inner = await source.manifest(entry_digest)
                if isinstance(inner, Index):
                    raise MalformedImage(image, "its index holds another index: push one index of images")
                configs[entry] = await source.config(inner)
                layered = layered or inner.layered
        labels = common_labels(image, {entry: config.labels for entry, config in configs.items()}, self._platform)
        return Description(labels, configs[self._platform].user, layered)

    async def push_label_image(self, reference: ImageReference, labels: Mapping[str, str], *, push: bool = True) -> str:
        """Push an image without layers that carries `labels`, under the reference's tag.

        Args:
            reference: repository and tag.
            labels: the image's labels.
            push: whether to push it; the digest is the same either way.

        Returns:
            the image's digest.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        config, manifest = label_image(dict(labels), self._platform)
        if not push:
            return digest_of(manifest)
        reference = self.located(reference)
        async with self._open(reference) as connection:
            await push_blob(connection, Bytes(config))
            return await push_manifest(connection, reference, manifest)

    async def push_image(
        self, reference: ImageReference, config: bytes, layers: Sequence[Blob], mount_from: ImageReference | None = None
    ) -> str:
        """Push an image with uncompressed layers; skip blobs that the registry has.

        Layers are not compressed because gzip costs a hundred times the copy to a registry on the same machine.

        Args:
            reference: repository and tag.
            config: the image's configuration document.
            layers: tars, lowest first.
            mount_from: another repository of the registry from which blobs may be mounted.

        Returns:
            the image's digest.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        manifest = image_manifest(config, [(layer.digest, layer.size) for layer in layers])
        reference, source = self.located(reference), None
        if mount_from is not None and self.located(mount_from).registry == reference.registry:
            source = self.located(mount_from).repository
        async with self._open(reference, PUSH_DEADLINE) as connection:
            for blob in (*layers, Bytes(config)):
                await push_blob(connection, blob, source)
            return await push_manifest(connection, reference, manifest)

    async def push_as_is(
        self, reference: ImageReference, manifest: bytes, media_type: str, blobs: Sequence[Blob]
    ) -> str:
        """Push a manifest that exists, after the blobs that it names; skip blobs that the registry has.

        Args:
            reference: repository and tag.
            manifest: the document, which is not changed.
            media_type: its type.
            blobs: what it names.

        Returns:
            the image's digest.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        reference = self.located(reference)
        async with self._open(reference, PUSH_DEADLINE) as connection:
            for blob in blobs:
                await push_blob(connection, blob)
            return await push_manifest(connection, reference, manifest, media_type)

    async def extend(
        self,
        below: ImageReference,
        reference: ImageReference,
        layer: Blob | None,
        extension: Extension,
        *,
        push: bool = True,
    ) -> str:
        """Extend a base image in the same registry by one layer, without transferring the base image's layers.

        Args:
            below: the base image.
            reference: repository and tag of the new image.
            layer: an uncompressed tar; None: only the configuration changes.
            extension: additions to the configuration.
            push: whether to push it; the digest is the same either way.

        Returns:
            the new image's digest.

        Raises:
            RegistryError: see `reside.registry.errors`; also if `below` is an index.
        """
        below, reference = self.located(below), self.located(reference)
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
        """Add `tag` to the image of `reference`, in the same repository.

        Raises:
            RegistryError: see `reside.registry.errors`.
        """
        reference = self.located(reference)
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
        """Open a connection; the deadline applies to all requests on it together."""
        try:
            with anyio.fail_after(deadline):
                async with connect(reference, self._mirrors, self._authorities) as connection:
                    yield connection
        except TimeoutError:
            raise RegistryUnavailable(
                str(reference), f"registry {reference.registry!r} took more than {deadline:.0f} s: try again later"
            ) from None


class _Source:
    """The documents of one image: those that are known, and those of its registry, which are added to them."""

    def __init__(self, connection: Connection, image: str, documents: dict[str, bytes]) -> None:
        self._connection = connection
        self._image = image
        self._documents = documents

    async def manifest(self, digest: str) -> Manifest | Index:
        if digest not in self._documents:
            url = self._connection.url(f"manifests/{digest}")
            self._documents[digest] = (await self._connection.send("GET", url, headers=_ACCEPT)).body
        return parse_manifest(self._image, verified(self._image, self._documents[digest], digest))

    async def config(self, manifest: Manifest) -> Config:
        digest = manifest.config
        if digest not in self._documents:
            self._documents[digest] = await _blob(self._connection, digest)
        return parse_config(self._image, verified(self._image, self._documents[digest], digest))

    async def keep(self, digest: str) -> None:
        """Read all documents of an image or index."""
        document = await self.manifest(digest)
        if isinstance(document, Manifest):
            await self.config(document)
            return
        for _, entry in document.entries:
            await self.keep(entry)


async def _blob(connection: Connection, digest: str) -> bytes:
    return (await connection.send("GET", connection.url(f"blobs/{digest}"))).body


def _single(image: str, content: bytes) -> Manifest:
    document = parse_manifest(image, content)
    if isinstance(document, Index):
        raise MalformedImage(image, "it is an index of several platforms: use the digest of one of its images")
    return document
