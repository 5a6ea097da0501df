"""Step 2 of a load: from an image's reference to an approve request with its preview, or to `invalid` with a reason.

One call makes one step and returns; what it waits for (the registry, the Sentinel's preview) brings the request's key
back into the leader's queue. All that was found out stands in the request, so a new leader goes on where the last died.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from reside.alpha import contracts, records
from reside.alpha.candidate import candidate, updated_replica
from reside.alpha.loading import resolve
from reside.alpha.loading.resolve import World
from reside.alpha.previews import preview
from reside.model.errors import InvalidInput, LoadRefused, NotReady
from reside.registry import ImageReference, RegistryError, RegistryUnavailable

if TYPE_CHECKING:
    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.model.entities import ApproveRequest, LoadRequest, Replica
    from reside.model.manifest import ContractManifest, ReplicaManifest
    from reside.model.stacks import StackPreview

REGISTRY_TIMEOUT_S: Final = 30.0
"""How long a request waits for a registry that is down."""
OPEN: Final = frozenset({"validating", "requires-approval", "approved"})


async def validate(alpha: Alpha, number: int) -> None:
    """Bring a request that is `validating` one step further.

    Raises:
        NotReady: it can't go on now; call again later.
    """
    record = await records.find_request(alpha.data, number)
    if record.value.status != "validating":
        return
    try:
        approved = record.value.approve_request or await _resolve(alpha, record.value)
        await _preview(alpha, record, approved)
    except (InvalidInput, RegistryError) as error:
        await _refuse(alpha, record, str(error))
    alpha.registry_down_since.pop(number, None)


async def _resolve(alpha: Alpha, request: LoadRequest) -> ApproveRequest:
    """Read the image and what it needs, choose a name, and note it all in the request."""
    reference = ImageReference.parse(request.image)
    try:
        digest = request.digest or await alpha.registry.resolve(reference)
        found = await contracts.fetch_manifest(alpha.registry, reference, digest)
        manifest = resolve.replica_manifest(found, reference.identity)
        fetched = {
            identity: await contracts.fetch_contract(alpha.registry, identity)
            for identity in resolve.contract_identities(manifest)
        }
    except RegistryUnavailable as error:
        raise _registry_is_down(alpha, request.id, error) from None
    async with alpha.transaction() as tx:
        await tx.load(alpha.data.root.id)
        ids = await tx.run_exclusively(lambda: contracts.refresh_all(alpha.data, fetched))
        world = await _world(alpha, request, manifest, fetched, ids)
        approved = resolve.approve_request(manifest, digest, world, request.requested_name)
        members: dict[str, Any] = {"approveRequest": approved.document(), "digest": digest}
        if world.existing is not None:
            members["existingReplica"] = world.existing.id
        found_map = (await records.find_request(alpha.data, request.id)).map
        tx.stage(lambda: found_map.update(members))
    return approved


async def _world(
    alpha: Alpha,
    request: LoadRequest,
    manifest: ReplicaManifest,
    fetched: dict[str, ContractManifest],
    ids: dict[str, int],
) -> World:
    required = {wish.identity for wish in manifest.requirements.values()}
    return World(
        existing=await _existing(alpha, request, manifest),
        taken=await _taken(alpha, request),
        contracts=fetched,
        providers={identity: await records.providers_of(alpha.data, ids[identity]) for identity in required},
    )


async def _existing(alpha: Alpha, request: LoadRequest, manifest: ReplicaManifest) -> Replica | None:
    wanted = request.existing_replica
    found = await updated_replica(alpha, manifest.identity, exclusive=manifest.info.exclusive, replica_id=wanted)
    if found is None and wanted is not None:
        raise LoadRefused(f"there is no replica {wanted} to update: leave the replica id out to make a new instance")
    return found


async def _taken(alpha: Alpha, request: LoadRequest) -> set[str]:
    """Names of instances, and those that other open requests hold."""
    names = {record.value.name for record in await records.all_replicas(alpha.data)}
    for other in await records.all_requests(alpha.data):
        held = other.value.approve_request
        if other.value.id != request.id and other.value.status in OPEN and held is not None:
            names.add(held.name)
    return names


async def _preview(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> None:
    """Have the candidate previewed; when the preview is there, the request requires approval or is invalid."""
    request = record.value
    wanted = (await records.find_request(alpha.data, request.id)).value.existing_replica
    existing = await updated_replica(alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=wanted)
    stack = await candidate(alpha, approved, existing, request.image)
    result = await preview(alpha, request.id, stack)
    if result is None:
        return
    if not result.applicable:
        raise LoadRefused(_why_not(result))
    async with alpha.transaction() as tx:
        found = await tx.load(record.map.id)
        if found.get("status") == "validating":
            tx.stage(lambda: found.update({"preview": result.document(), "status": "requires-approval"}))


def _why_not(preview: StackPreview) -> str:
    if preview.violations:
        return "the stack breaks the policy: " + "; ".join(preview.violations)
    return f"the stack can't be applied: {preview.error}"


async def _refuse(alpha: Alpha, record: RequestRecord, why: str) -> None:
    async with alpha.transaction() as tx:
        found = await tx.load(record.map.id)
        if found.get("status") == "validating":
            tx.stage(lambda: found.update({"status": "invalid", "errorMessage": why}))


def _registry_is_down(alpha: Alpha, request: int, error: RegistryUnavailable) -> Exception:
    """The error for now: try again, or give up after a while."""
    now = asyncio.get_running_loop().time()
    since = alpha.registry_down_since.setdefault(request, now)
    if now - since < REGISTRY_TIMEOUT_S:
        return NotReady(str(error))
    return LoadRefused(f"{error}; create the request anew when the registry is back")
