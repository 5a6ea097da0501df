"""Contract entities: they have no versions; each equals the manifest that was fetched last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.alpha import lookups
from reside.alpha.contract import packaged
from reside.alpha.lookups import Reservation
from reside.model import lookup
from reside.model.constants import MANIFEST_LABEL
from reside.model.errors import InvalidManifest, LoadRefused
from reside.model.manifest import ContractManifest, Manifest, decode_label, document
from reside.registry import ImageNotFound, ImageReference, RegistryClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap
    from reside.registry import Description

MAX_LABEL_LENGTH: Final = 256 * 1024
"""Maximum length of a manifest's label in characters; a longer one is refused."""
_MEMBERS = ("identity", "displayInfo", "permissions", "methods")


async def fetch_manifest(
    registry: RegistryClient, reference: ImageReference, digest: str
) -> tuple[Manifest, Description]:
    """Fetch the manifest in an image's label, and what else the image says about itself.

    Raises:
        LoadRefused: the image has no such label, or one that is too long.
        InvalidManifest: the label is not a manifest.
        RegistryError: the image can't be read.
    """
    described = await registry.describe(reference, digest)
    label = described.labels.get(MANIFEST_LABEL)
    if label is None:
        raise LoadRefused(f"image {reference} has no label {MANIFEST_LABEL}: build it with `reside build`")
    if len(label) > MAX_LABEL_LENGTH:
        raise LoadRefused(
            f"the label {MANIFEST_LABEL} of image {reference} has {len(label)} characters, and at most "
            f"{MAX_LABEL_LENGTH} are read: shorten its manifest"
        )
    try:
        return decode_label(label), described
    except InvalidManifest as error:
        raise InvalidManifest(f"image {reference}: {error}") from None


async def fetch_contract(registry: RegistryClient, identity: str) -> ContractManifest:
    """Fetch the latest manifest of a contract.

    Raises:
        LoadRefused: the image does not exist, or it is not the image of this contract.
        RegistryError: the image can't be read.
    """
    reference = ImageReference.parse(identity)
    try:
        manifest, _ = await fetch_manifest(registry, reference, await registry.resolve(reference))
    except ImageNotFound:
        if (known := packaged(identity)) is not None:
            return known
        raise LoadRefused(f"contract {identity} is unknown: push its image with `reside build --push`") from None
    if not isinstance(manifest, ContractManifest):
        raise LoadRefused(f"image {identity} is a replica, not a contract: name the image of a contract")
    manifest = manifest.resolved()
    if manifest.identity != identity:
        raise LoadRefused(
            f"the manifest of contract {identity} has the identity {manifest.identity}: "
            "push the image to that repository"
        )
    return manifest


async def find_contract(data: AlphaData, identity: str) -> CoMap | None:
    """Return a contract's entity; None if it does not exist."""
    target = await lookups.find(data, lookup.contract_by_identity(identity))
    return None if target is None else await data.node.load_map(target)


async def find_manifest(data: AlphaData, identity: str) -> ContractManifest | None:
    """Return the manifest of a contract as its entity has it; None if the entity does not exist."""
    entity = await find_contract(data, identity)
    if entity is None:
        return None
    return ContractManifest.model_validate(
        {"type": "contract"} | {key: entity[key] for key in _MEMBERS if key in entity}
    )


async def contract_id(data: AlphaData, identity: str) -> int | None:
    """Return the id of a contract's entity; None if it does not exist."""
    entity = await find_contract(data, identity)
    return None if entity is None else int(entity["id"])


async def refresh_all(data: AlphaData, manifests: Mapping[str, ContractManifest]) -> dict[str, int]:
    """Update or create the entities of several contracts; return their ids by identity. See `refresh`."""
    return {identity: await refresh(data, manifest) for identity, manifest in manifests.items()}


async def refresh(data: AlphaData, manifest: ContractManifest) -> int:
    """Update or create a contract's entity from its manifest, and return its id. The caller holds Alpha's lock."""
    members = {key: value for key, value in document(manifest).items() if key in _MEMBERS}
    target = await lookups.find(data, lookup.contract_by_identity(manifest.identity))
    reservation = Reservation(manifest.identity, "nextContract")
    if target is None:
        number = await lookups.reserve_id(data, lookup.contract_by_id, reservation)
        target = await lookups.find(data, lookup.contract_by_id(number))
        entity = await data.node.load_map(target) if target else data.public.create_map({"id": number, **members})
        await lookups.set_target(data, lookup.contract_by_id(number), entity.id)
        await lookups.make_list(data, lookup.replicas_by_contract(number))
        await lookups.set_target(data, lookup.contract_by_identity(manifest.identity), entity.id)
    else:
        entity = await data.node.load_map(target)
    lookups.add_once(data.contracts, entity.id)
    lookups.confirm_id(data, reservation, entity["id"])
    changed = {key: value for key, value in members.items() if entity.get(key) != value}
    entity.update(changed)
    return int(entity["id"])
