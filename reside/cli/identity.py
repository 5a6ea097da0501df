"""`reside identity`: the identity of what a folder or an image holds, and the identities of its contracts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reside.build.registries import client_of_environment
from reside.build.source import check_reachable, read_source
from reside.cli import output
from reside.model.constants import MANIFEST_LABEL, OWN, RESIDE_REGISTRY
from reside.model.errors import InvalidInput, InvalidManifest
from reside.model.identities import repository_in
from reside.model.manifest import ReplicaManifest, decode_label
from reside.registry import ImageReference

if TYPE_CHECKING:
    from reside.model.manifest import Manifest
    from reside.registry import RegistryClient

TAG = "latest"


def identity(
    source: Annotated[str, typer.Argument(help="Folder with replica.yaml or contract.yaml, or an image.")] = ".",
    *,
    local_cluster: Annotated[
        str,
        typer.Option(help=f"Local cluster that runs the registry {RESIDE_REGISTRY}.", envvar="RESIDE_LOCAL_CLUSTER"),
    ] = "default",
    format_: Annotated[output.Output, typer.Option("--output", "-o", help="Format of the output.")] = (
        output.Output.table
    ),
) -> None:
    """Print the identity of a replica or a contract, as its manifest names it: the name of its image."""
    manifest, digest = read_manifest(source, local_cluster)
    found = describe(manifest) | ({} if digest is None else {"digest": digest})
    if format_ is output.Output.table:
        output.line(found["identity"])
        return
    output.record(found, format_)


def describe(manifest: Manifest) -> dict[str, Any]:
    """Return the identity that a manifest has, and those of the contracts that it names."""
    found: dict[str, Any] = {"identity": manifest.identity, "type": manifest.type}
    if isinstance(manifest, ReplicaManifest):
        found["implements"] = sorted(each.identity for each in manifest.implementations.values())
        found["requires"] = sorted({each.identity for each in manifest.requirements.values()})
    return found


def read_manifest(source: str, local_cluster: str) -> tuple[Manifest, str | None]:
    """Return the manifest of a folder or an image, and the digest of the image.

    Raises:
        InvalidInput: it is neither a folder nor an image.
        InvalidManifest: it has no manifest, or that of another image: nobody could load it.
        RegistryError: its registry lacks it, or can't be reached.
    """
    if Path(source).is_dir():
        return read_source(Path(source), TAG).manifest, None
    return asyncio.run(_of_image(client_of_environment(local_cluster), source))


def _is_of(name: str, identity: str) -> bool:
    """Return whether an image with a name in its manifest can have an identity: one of ReSide's own in each cluster."""
    return name == identity or (name.startswith(f"{OWN}/") and repository_in([identity], name) is not None)


async def _of_image(client: RegistryClient, image: str) -> tuple[Manifest, str]:
    if image.startswith(("/", "./", "../", "~")):
        raise InvalidInput(
            f"{image} is not a folder: name one that contains replica.yaml or contract.yaml, or an image"
        )
    reference = ImageReference.parse(image)
    check_reachable(client.located(reference), client.mirrors)
    digest = await client.resolve(reference)
    label = (await client.describe(reference, digest)).labels.get(MANIFEST_LABEL)
    if label is None:
        raise InvalidManifest(f"image {image} has no label {MANIFEST_LABEL}: build it with `reside build`")
    manifest = decode_label(label)
    if not _is_of(manifest.identity, reference.identity):
        raise InvalidManifest(
            f"the manifest's identity is {manifest.identity}, but the image is {reference.identity}: "
            "push the image to the repository that its manifest names"
        )
    return manifest, digest
