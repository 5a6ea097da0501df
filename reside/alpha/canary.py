"""The canary: a version that runs beside the current one with a share of the pods, until it is promoted or aborted.

The member `canary` of a replica names it. While there is a canary, the current version stays: no image is loaded, and a
current version that has been healthy is not rolled back. People promote and abort it (`reside.alpha.managing.canary`).
Promoting is one transaction of one map. An abort marks the version first: a marked version is no canary any more, so
all that is left to do after a death between the two writes is to remove the member, which the next pass does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from reside.alpha import records
from reside.alpha.health import has_missed_deadline
from reside.model.errors import LoadRefused
from reside.model.identities import system_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.alpha.records import ReplicaRecord
    from reside.alpha.state import Alpha
    from reside.model.entities import ApproveRequest, Replica, ReplicaVersion
    from reside.replica.transactions import Transaction

_log = structlog.get_logger(__name__)


def check_canary(approved: ApproveRequest, existing: Replica | None, percent: int | None) -> None:
    """Refuse a load of a replica that has a canary, and a canary that can't run beside the current version. Pure.

    Args:
        approved: what is resolved for the load.
        existing: the replica that it updates; None for a new instance.
        percent: the share of a canary; None if the load replaces the current version.

    Raises:
        LoadRefused: the message says why, and what to do.
    """
    if existing is not None and existing.canary is not None:
        raise LoadRefused(
            f"replica {existing.name} has a canary, version {existing.canary}: promote or abort it first "
            f"(`reside replica canary promote {existing.name}`, `reside replica canary abort {existing.name}`)"
        )
    if percent is None:
        return
    if existing is None or existing.current_version is None:
        why: str | None = "a canary runs beside the current version of a replica: give the id of the replica to update"
    else:
        why = next(_obstacles(approved, existing, existing.version(existing.current_version)), None)
    if why is not None:
        raise LoadRefused(f"{why}, or load the image without a canary")


def _obstacles(approved: ApproveRequest, existing: Replica, current: ReplicaVersion) -> Iterator[str]:
    """Yield why the replica can't have a canary, each with what to do."""
    name = existing.name
    if system_id(existing.identity) is not None:
        yield f"replica {name} is a part of ReSide, and any of its pods may lead: choose another replica"
    if existing.info.kind == "oneshot" or not existing.info.scalable:
        yield f"two versions of {name} can't run at the same time, because it is not scalable: choose another replica"
    if not existing.management.enabled:
        yield f"replica {name} is disabled: enable it first"
    if not current.was_healthy:
        yield f"version {current.id} of {name}, the current one, has never been healthy: wait until it is"
    missing = sorted(set(current.implementations.values()) - set(approved.implementations.values()))
    if missing:
        yield (
            f"the image does not implement {', '.join(missing)} as version {current.id} of {name} does, and a canary "
            "gets the calls of the same callers: implement it"
        )


def has_failed(replica: Replica, now_ms: int) -> bool:
    """Return whether the canary of a replica was not healthy in time. Pure."""
    canary = replica.canary_version
    return canary is not None and canary.status == "error" and has_missed_deadline(canary, now_ms)


async def end_canary(alpha: Alpha, record: ReplicaRecord, replica: Replica) -> bool:
    """Abort the canary of a replica if it has failed, and complete an abort that a death has interrupted.

    Args:
        alpha: the running Alpha.
        record: the replica's record.
        replica: the replica with the present statuses of its versions.

    Returns:
        whether something was written.
    """
    if not _is_due(replica, alpha.node.now_ms()):
        return False
    async with alpha.transaction() as tx:
        present = await records.read_active(alpha.data, record.map.id)
        if not _is_due(present.value, alpha.node.now_ms()):
            return False
        stage_abort(tx, present)
    failed = present.value.canary_version
    if failed is not None:
        _log.warning("canary aborted", replica=replica.name, version=failed.id, reason=failed.reason)
    return True


def _is_due(replica: Replica, now_ms: int) -> bool:
    return has_failed(replica, now_ms) or (replica.canary is not None and replica.canary_version is None)


def stage_abort(tx: Transaction, record: ReplicaRecord) -> None:
    """Stage the writes that take the canary of a replica away. The caller holds Alpha's lock."""
    replica = record.value
    canary = replica.canary_version
    if canary is not None:
        tx.stage(lambda: record.versions[canary.id].set("rolledBackTo", replica.current_version))
    tx.stage(lambda: record.map.delete("canary"))
