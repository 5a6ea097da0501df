"""Step 4 of a load: create the version of an approved request; a new instance first gets account, block and look-ups.

Every step is idempotent: it checks whether its result exists. What a step creates has a computable name, or such a name
points to it before the next step starts, so a process that is killed at any point leaves nothing that a later run would
create again. A version names its request, so two requests never share one. The request's `version` is written last;
until then the leader loop retries. The pass over the replica that follows writes its grants
(`reside.alpha.granting.sync`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import contracts, lookups, records
from reside.alpha.active_versions import (
    activate,
    active_maps,
    ended,
    keep_active,
    list_dependant,
    providers,
    unlist_dependant,
)
from reside.alpha.candidate import next_version, version_of
from reside.alpha.instances import instance_of, prepare_account
from reside.alpha.stacks.system import is_rendered
from reside.model import lookup
from reside.model.entities import ReplicaVersion
from reside.model.errors import LoadRefused

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reside.alpha.data import AlphaData
    from reside.alpha.records import ReplicaRecord, RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap, Credentials
    from reside.model.entities import ApproveRequest, Replica


async def create_version(alpha: Alpha, number: int) -> None:
    """Create the version of an approved request; do nothing if it exists, or if the request is in another state."""
    record = await records.find_request(alpha.data, number)
    approved = _approved(record)
    if approved is None:
        return
    prepared = await prepare_account(alpha, record, approved)
    async with alpha.transaction() as tx:
        await tx.load(record.map.id)
        await tx.run_exclusively(lambda: _create_or_refuse(alpha, record.map, number, prepared))


def _approved(record: RequestRecord) -> ApproveRequest | None:
    """Return what a request has approved; None if it is not approved, or if its version exists."""
    request = record.value
    return request.approve_request if request.status == "approved" and request.version is None else None


async def _create_or_refuse(alpha: Alpha, request: CoMap, number: int, prepared: Credentials | None) -> None:
    try:
        await _create(alpha, number, prepared)
    except LoadRefused as error:
        request.update({"status": "invalid", "errorMessage": str(error)})


async def _create(alpha: Alpha, number: int, prepared: Credentials | None) -> None:
    record = await records.find_request(alpha.data, number)
    approved = _approved(record)
    if approved is None:
        return
    replica = await instance_of(alpha, record, approved, prepared)
    await index_versions(alpha.data, replica)
    version = await _version(alpha, record, replica, approved)
    replica = await records.read_active(alpha.data, replica.map.id, also=[version.id])
    await list_dependant(alpha.data, replica.map, [version])
    if version.canary_percent is None:
        await _index_contracts(alpha, replica, version)
    _switch(replica, version)
    await alpha.node.flush()
    record.map.set("version", version.id)


async def _version(
    alpha: Alpha, record: RequestRecord, replica: ReplicaRecord, approved: ApproveRequest
) -> ReplicaVersion:
    """Return the request's version; add it to the replica's list, and to its active versions, if it is not there.

    The version's map has a name that follows from the request, and the version exists once it is in the list. So a
    process that dies in between leaves a map that only a later run for the same request uses.
    """
    name, group = f"version.of-request.{record.value.id}", alpha.data.replicas_group
    listed = await alpha.node.load_list(replica.map["versions"])
    found = await alpha.node.find_unique_map(group.id, name)
    if found is not None and found.id in listed:
        earlier = records.parse(ReplicaVersion, found.as_dict(), found.id)
        if earlier.rolled_back_to is None and earlier.id > (replica.value.current_version or 0):
            activate(replica.map, earlier.id, found.id)
        return earlier
    version = version_of(approved, next_version(replica.value), record.value)
    if not is_rendered(approved.identity):  # the seed itself makes this load, so it has run
        version = version.model_copy(update={"status": "completed"})
    members = version.compact_document()
    made = await alpha.node.unique_map(group, name, members)
    made.update({key: value for key, value in members.items() if made.get(key) != value})
    listed.append(made.id)
    activate(replica.map, version.id, made.id)
    return version


async def index_versions(data: AlphaData, replica: ReplicaRecord) -> None:
    """Write which versions are active, for a replica of an earlier release. The caller holds Alpha's lock."""
    if active_maps(replica.map.as_dict()) is not None:
        return
    whole = await records.read_replica(data, replica.map.id)
    gone = ended(whole.value)
    await list_dependant(data, replica.map, [version for version in whole.value.versions if version not in gone])
    keep_active(replica.map, whole.value, whole.versions, gone)


async def retire_versions(alpha: Alpha, record: ReplicaRecord, replica: Replica, reported: Collection[int]) -> None:
    """End the activity of versions that have ended, after their grants were withdrawn.

    Args:
        alpha: the running Alpha.
        record: the replica's record.
        replica: the replica with the present statuses of its versions.
        reported: ids of the versions of which the Sentinel reports an object.
    """
    is_indexed = active_maps(record.map.as_dict()) is not None
    if is_indexed and not ended(replica, reported):
        return

    async def write() -> None:
        await index_versions(alpha.data, record)
        present = await records.read_active(alpha.data, record.map.id)
        gone = ended(present.value, reported)
        still = providers([version for version in present.value.versions if version not in gone])
        await unlist_dependant(alpha.data, record.map, providers(gone) - still)
        keep_active(record.map, present.value, present.versions, gone)

    async with alpha.transaction() as tx:
        await tx.run_exclusively(write)


async def _index_contracts(alpha: Alpha, replica: ReplicaRecord, version: ReplicaVersion) -> None:
    """Add the replica to the look-ups of this version's contracts; remove it from those of earlier versions only."""
    now = set(version.implementations.values())
    await _set_listings(alpha, replica, await _listings(alpha, replica.value, now))


async def _set_listings(alpha: Alpha, replica: ReplicaRecord, listings: Mapping[str, bool]) -> None:
    for name, is_listed in listings.items():
        if is_listed:
            await lookups.add_target(alpha.data, name, replica.map.id, replica.value.id)
        else:
            await lookups.remove_target(alpha.data, name, replica.map.id)


async def _listings(alpha: Alpha, replica: Replica, now: set[str]) -> dict[str, bool]:
    """Return for each look-up by a contract that a version implements whether the replica should be in it."""
    ever = {identity for version in replica.versions for identity in version.implementations.values()}
    numbers = {identity: await contracts.contract_id(alpha.data, identity) for identity in sorted(now | ever)}
    return {lookup.replicas_by_contract(n): identity in now for identity, n in numbers.items() if n is not None}


async def sync_providers(alpha: Alpha, record: ReplicaRecord) -> None:
    """List an enabled replica as a provider of the contracts of its current version, and a disabled one nowhere."""
    if not await _wrong_listings(alpha, record):
        return

    async def write() -> None:
        present = await records.read_active(alpha.data, record.map.id)
        await _set_listings(alpha, present, await _wrong_listings(alpha, present))

    async with alpha.transaction() as tx:
        await tx.run_exclusively(write)


async def _wrong_listings(alpha: Alpha, record: ReplicaRecord) -> dict[str, bool]:
    """Return for each look-up by contract that is wrong about a replica whether it should list the replica."""
    replica = record.value
    if replica.current_version is None:
        return {}
    enabled = replica.management.enabled and replica.deletion is None
    now = set(replica.version(replica.current_version).implementations.values()) if enabled else set()
    return {
        name: is_listed
        for name, is_listed in (await _listings(alpha, replica, now)).items()
        if await lookups.is_listed(alpha.data, name, record.map.id) != is_listed
    }


def _switch(replica: ReplicaRecord, version: ReplicaVersion) -> None:
    """Make the version the current one, and enable the replica; or make the version the canary.

    Do nothing if it was rolled back, promoted or aborted in the meantime.
    """
    current = replica.value.current_version
    if version.rolled_back_to is not None or (current is not None and current >= version.id):
        return
    if version.canary_percent is not None:
        if replica.value.canary != version.id:
            replica.map.set("canary", version.id)
        return
    if not replica.value.management.enabled:
        replica.management.set("enabled", True)
    replica.map.set("currentVersion", version.id)
