"""Step 2 of a load: resolve an image to an approve request with a preview, or set the request to `invalid`.

A call does one step and returns. What it waits for (the registry, the Sentinel's preview) puts the request's key into
the leader's queue again. All results are stored in the request, so a new leader continues where the last one stopped.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from reside.alpha import contracts, records
from reside.alpha.candidate import candidate, updated_replica
from reside.alpha.loading import naming, resolve, turns
from reside.alpha.loading.resolve import ClusterState
from reside.alpha.loading.revision import approval_revision
from reside.alpha.previews import preview
from reside.common import tracing
from reside.model.errors import InvalidInput, LoadRefused, NotReady
from reside.model.identities import resolved
from reside.registry import ImageReference, RegistryError, RegistryUnavailable

if TYPE_CHECKING:
    from reside.alpha.records import RequestRecord
    from reside.alpha.state import Alpha
    from reside.model.entities import ApproveRequest, LoadRequest, Replica, ReplicaChoice
    from reside.model.manifest import ContractManifest, ReplicaManifest
    from reside.model.previews import StackPreview

REGISTRY_TIMEOUT_S: Final = 30.0
"""How long a request waits for a registry that is unavailable."""
FETCH_TIMEOUT_S: Final = 90.0
"""How long an attempt to read an image and all its contracts may take."""


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
    try:
        with tracing.step("read an image", tracing.current()):
            async with asyncio.timeout(FETCH_TIMEOUT_S):
                digest, manifest, fetched = await _fetch(alpha, request)
    except RegistryUnavailable as error:
        failure = _unavailable_error(alpha, request.id, error)
        if isinstance(failure, NotReady):
            await _say_what_it_waits_for(alpha, request, str(failure))
        raise failure from None
    except TimeoutError:
        raise LoadRefused(
            f"image {request.image} and its contracts could not be read within {FETCH_TIMEOUT_S:.0f} s: "
            "create a new load request when the registry responds faster"
        ) from None
    async with alpha.transaction() as tx:
        record = await records.find_request(alpha.data, request.id)
        await tx.load(record.map.id)
        existing = await _existing(alpha, request, manifest)
        name = existing.name if existing else await _free_name(alpha, request, manifest)
        state = ClusterState(existing, name, fetched, await _providers(alpha, manifest))
        approved = resolve.approve_request(manifest, digest, state)
        await tx.run_exclusively(lambda: _store(alpha, record, approved, fetched, existing))
    return approved


async def _fetch(alpha: Alpha, request: LoadRequest) -> tuple[str, ReplicaManifest, dict[str, ContractManifest]]:
    """Read the image and its contracts: the image's digest, its manifest, and the contracts by identity."""
    reference = ImageReference.parse(resolved(request.image))
    cluster = alpha.cluster
    allowed = cluster.allowed_registries
    resolve.check_registry(cluster.located(reference.identity), allowed)
    digest = request.digest or await alpha.registry.resolve(reference)
    found, described = await contracts.fetch_manifest(alpha.registry, reference, digest)
    manifest = resolve.replica_manifest(found.resolved(), reference.identity, cluster.located)
    resolve.check_runnable(str(reference), described)
    fetched = {}
    for identity in resolve.contract_identities(manifest):
        resolve.check_registry(cluster.located(identity), allowed)
        fetched[identity] = await contracts.fetch_contract(alpha.registry, identity)
    return digest, manifest, fetched


async def _free_name(alpha: Alpha, request: LoadRequest, manifest: ReplicaManifest) -> str:
    return await naming.free_name(alpha.data, request.requested_name or manifest.info.name, request.id)


async def _providers(alpha: Alpha, manifest: ReplicaManifest) -> dict[str, tuple[ReplicaChoice, ...]]:
    """Return the replicas that implement each required contract; a contract without an entity has none."""
    found = {}
    for identity in {requirement.identity for requirement in manifest.requirements.values()}:
        number = await contracts.contract_id(alpha.data, identity)
        found[identity] = () if number is None else await records.providers_of(alpha.data, number)
    return found


async def _store(
    alpha: Alpha,
    record: RequestRecord,
    approved: ApproveRequest,
    fetched: dict[str, ContractManifest],
    existing: Replica | None,
) -> None:
    """Store the result in the request, and what it depends on before: the contracts and the claim on the name."""
    await contracts.refresh_all(alpha.data, fetched)
    if existing is None:
        await naming.hold(alpha.data, approved.name, record.map.id)
    members: dict[str, Any] = {"approveRequest": approved.document(), "digest": approved.digest}
    if existing is not None:
        members["existingReplica"] = existing.id
    record.map.update(members, unset=[member for member in ("waitsFor",) if member in record.map])


async def _existing(alpha: Alpha, request: LoadRequest, manifest: ReplicaManifest) -> Replica | None:
    replica_id = request.existing_replica
    found = await updated_replica(alpha, manifest.identity, exclusive=manifest.info.exclusive, replica_id=replica_id)
    if found is None and replica_id is not None:
        raise LoadRefused(f"replica {replica_id} does not exist: leave the replica id out to create a new instance")
    return found


async def _preview(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> None:
    """Preview the candidate; once there is a preview, set the request to `requires-approval` or `invalid`.

    Raises:
        NotReady: another approved load of the replica is carried out first.
    """
    request = (await records.find_request(alpha.data, record.value.id)).value
    existing = await updated_replica(
        alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=request.existing_replica
    )
    first = await turns.holder_of(alpha.data, turns.turn_of(approved, existing))
    if first is not None:
        raise NotReady(f"load request {first} of {approved.name} is approved and is carried out first")
    stack = await candidate(alpha, approved, existing, request)
    result = await preview(alpha, request.id, stack)
    if result is None:
        return
    if not result.applicable:
        raise LoadRefused(_refusal_reason(result))
    members = {
        "preview": result.document(),
        "revision": approval_revision(request, approved, existing, stack, result),
        "status": "requires-approval",
    }
    async with alpha.transaction() as tx:
        found = await tx.load(record.map.id)
        if found.get("status") == "validating":
            tx.stage(lambda: found.update(members))


def _refusal_reason(preview: StackPreview) -> str:
    if preview.violations:
        return "the stack breaks the policy: " + "; ".join(preview.violations)
    return f"the stack can't be applied: {preview.error}"


async def _refuse(alpha: Alpha, record: RequestRecord, why: str) -> None:
    async with alpha.transaction() as tx:
        found = await tx.load(record.map.id)
        if found.get("status") == "validating":
            tx.stage(lambda: found.update({"status": "invalid", "errorMessage": why}))


async def _say_what_it_waits_for(alpha: Alpha, request: LoadRequest, why: str) -> None:
    """Store why a validation takes long. It is shown to people while the request is `validating`."""
    if request.waits_for == why:
        return
    async with alpha.transaction() as tx:
        record = await records.find_request(alpha.data, request.id)
        found = await tx.load(record.map.id)
        if found.get("status") == "validating":
            tx.stage(lambda: found.set("waitsFor", why))


def _unavailable_error(alpha: Alpha, request: int, error: RegistryUnavailable) -> Exception:
    """Return the error for an unavailable registry: retry, or refuse the request after the timeout."""
    now = asyncio.get_running_loop().time()
    since = alpha.registry_down_since.setdefault(request, now)
    if now - since < REGISTRY_TIMEOUT_S:
        return NotReady(str(error))
    return LoadRefused(f"{error}; create a new load request when the registry is available again")
