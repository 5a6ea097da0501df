"""Candidates: the replica and the stack that result from a load request. Pure, except for what reads the current state.

A candidate is rendered like any stack, with the new version as the current one, or as the canary. What a new instance
does not have yet (account, control block) is a placeholder: it affects neither policy nor the list of changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.alpha import records
from reside.alpha.canary import check_canary
from reside.alpha.rendering import render_replica
from reside.model.entities import Replica, ReplicaVersion
from reside.model.errors import LoadRefused

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.model.entities import ApproveRequest, LoadRequest
    from reside.model.stacks import DesiredStack

PENDING: Final = "pending"
"""Placeholder for what a new instance gets when it is created."""
_UNSAVED_ID: Final = -1


def version_of(approved: ApproveRequest, number: int, request: LoadRequest) -> ReplicaVersion:
    """Return the version that the approval of a request creates."""
    return ReplicaVersion(
        id=number,
        request=request.id,
        health=request.health,
        canary_percent=request.canary_percent,
        image=request.image,
        digest=approved.digest,
        display_info=approved.display_info,
        probes=approved.probes,
        implementations=approved.implementations,
        requirements=approved.requirements,
    )


def next_version(replica: Replica | None) -> int:
    """Return the id of the version after the latest one."""
    if replica is None:
        return 1
    return max(replica.last_version or 0, *(version.id for version in replica.versions), 0) + 1


def with_version(approved: ApproveRequest, existing: Replica | None, request: LoadRequest) -> Replica:
    """Return the replica as it will be after the load.

    Raises:
        LoadRefused: the replica has a canary, or can't have the one that the request asks for.
    """
    check_canary(approved, existing, request.canary_percent)
    version = version_of(approved, next_version(existing), request)
    if existing is None:
        return Replica(
            id=_UNSAVED_ID,
            name=approved.name,
            identity=approved.identity,
            info=approved.info,
            account=PENDING,
            control_block=PENDING,
            current_version=version.id,
            versions=(version,),
        )
    versions = (*existing.versions, version)
    if request.canary_percent is not None:
        return existing.model_copy(update={"canary": version.id, "versions": versions})
    management = existing.management.model_copy(update={"enabled": True})
    update = {"management": management, "current_version": version.id, "versions": versions}
    return existing.model_copy(update=update)


async def candidate(
    alpha: Alpha, approved: ApproveRequest, existing: Replica | None, request: LoadRequest
) -> DesiredStack:
    """Return the stack that an approve request leads to now.

    Raises:
        LoadRefused: see `with_version`.
    """
    return await render_replica(alpha, with_version(approved, existing, request))


async def updated_replica(alpha: Alpha, identity: str, *, exclusive: bool, replica_id: int | None) -> Replica | None:
    """Return the replica that a load of an image updates; None for a new instance (docs/model.md, section 5).

    Args:
        alpha: the running Alpha.
        identity: identity of the image.
        exclusive: whether the image's manifest allows one instance only.
        replica_id: the replica that the load request names.

    Raises:
        LoadRefused: that replica is being deleted.
    """
    found = await records.first_of(alpha.data, identity)
    if found is None or not (exclusive or found.value.info.exclusive):
        found = None if replica_id is None else await records.find_active(alpha.data, replica_id)
    if found is not None and found.value.deletion is not None:
        raise LoadRefused(f"replica {found.value.name} is being deleted: load the image again when it is gone")
    return None if found is None else found.value
