"""Step 2 of a load: resolve an image to an approve request with a preview, or set the request to `invalid`.

A call does one step and returns. What it waits for (the registry, the Sentinel's preview) puts the request's key into
the leader's queue again. All results are stored in the request, so a new leader continues where the last one stopped.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from reside.alpha import contracts, records
from reside.alpha.candidate import candidate, updated_replica
from reside.alpha.loading import resolve
from reside.alpha.loading.resolve import ClusterState
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
"""How long a request waits for a registry that is unavailable."""
OPEN: Final = frozenset({"validating", "requires-approval", "approved"})


async def validate(alpha: Alpha, number: int) -> None:
    """Do the next step of a request that is `validating`.

    Raises:
        NotReady: the step can't be done now; try again later.
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
    """Read the image and its contracts, choose a name, and store the result in the request."""
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
        raise _unavailable_error(alpha, request.id, error) from None
    async with alpha.transaction() as tx:
        await tx.load(alpha.data.root.id)
        ids = await tx.run_exclusively(lambda: contracts.refresh_all(alpha.data, fetched))
        state = await _cluster_state(alpha, request, manifest, fetched, ids)
        approved = resolve.approve_request(manifest, digest, state, request.requested_name)
        members: dict[str, Any] = {"approveRequest": approved.document(), "digest": digest}
        if state.existing is not None:
            members["existingReplica"] = state.existing.id
        found_map = (await records.find_request(alpha.data, request.id)).map
        tx.stage(lambda: found_map.update(members))
    return approved


async def _cluster_state(
    alpha: Alpha,
    request: LoadRequest,
    manifest: ReplicaManifest,
    fetched: dict[str, ContractManifest],
    ids: dict[str, int],
) -> ClusterState:
    required = {requirement.identity for requirement in manifest.requirements.values()}
    return ClusterState(
        existing=await _existing(alpha, request, manifest),
        taken=await _taken(alpha, request),
        contracts=fetched,
        providers={identity: await records.providers_of(alpha.data, ids[identity]) for identity in required},
    )


async def _existing(alpha: Alpha, request: LoadRequest, manifest: ReplicaManifest) -> Replica | None:
    replica_id = request.existing_replica
    found = await updated_replica(alpha, manifest.identity, exclusive=manifest.info.exclusive, replica_id=replica_id)
    if found is None and replica_id is not None:
        raise LoadRefused(f"replica {replica_id} does not exist: leave the replica id out to create a new instance")
    return found


async def _taken(alpha: Alpha, request: LoadRequest) -> set[str]:
    """Return the names of all instances and of other open requests."""
    names = {record.value.name for record in await records.all_replicas(alpha.data)}
    for other in await records.all_requests(alpha.data):
        held = other.value.approve_request
        if other.value.id != request.id and other.value.status in OPEN and held is not None:
            names.add(held.name)
    return names


async def _preview(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> None:
    """Preview the candidate; once there is a preview, set the request to `requires-approval` or `invalid`."""
    request = record.value
    replica_id = (await records.find_request(alpha.data, request.id)).value.existing_replica
    existing = await updated_replica(alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=replica_id)
    stack = await candidate(alpha, approved, existing, request.image)
    result = await preview(alpha, request.id, stack)
    if result is None:
        return
    if not result.applicable:
        raise LoadRefused(_refusal_reason(result))
    async with alpha.transaction() as tx:
        found = await tx.load(record.map.id)
        if found.get("status") == "validating":
            tx.stage(lambda: found.update({"preview": result.document(), "status": "requires-approval"}))


def _refusal_reason(preview: StackPreview) -> str:
    if preview.violations:
        return "the stack breaks the policy: " + "; ".join(preview.violations)
    return f"the stack can't be applied: {preview.error}"


async def _refuse(alpha: Alpha, record: RequestRecord, why: str) -> None:
    async with alpha.transaction() as tx:
        found = await tx.load(record.map.id)
        if found.get("status") == "validating":
            tx.stage(lambda: found.update({"status": "invalid", "errorMessage": why}))


def _unavailable_error(alpha: Alpha, request: int, error: RegistryUnavailable) -> Exception:
    """Return the error for an unavailable registry: retry, or refuse the request after the timeout."""
    now = asyncio.get_running_loop().time()
    since = alpha.registry_down_since.setdefault(request, now)
    if now - since < REGISTRY_TIMEOUT_S:
        return NotReady(str(error))
    return LoadRefused(f"{error}; create a new load request when the registry is available again")
