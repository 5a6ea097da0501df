"""Promote or abort the canary of a replica. A call names the version that its caller has seen, and may be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha.canary import stage_abort
from reside.alpha.managing.configure import find
from reside.model.errors import Conflict

if TYPE_CHECKING:
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica


async def promote(alpha: Alpha, number: int, version: int) -> Replica:
    """Make the canary of a replica the current version; do nothing if it is.

    Args:
        alpha: the running Alpha.
        number: id of the replica.
        version: id of the canary.

    Raises:
        InvalidInput: the replica does not exist.
        Conflict: the version is not the canary, or it has never been healthy.
    """
    async with alpha.transaction() as tx:
        record = await find(alpha, number)
        replica = record.value
        canary = replica.canary_version
        if replica.current_version == version:
            return replica
        if canary is None or canary.id != version:
            raise _other_canary(replica, version)
        if not canary.was_healthy:
            why = f" ({canary.reason})" if canary.reason else ""
            raise Conflict(
                f"version {version} of {replica.name} is {canary.status}{why} and has never been healthy: "
                "wait until it runs, or abort it"
            )
        tx.stage(lambda: record.map.update({"currentVersion": version}, unset=["canary"]))
    return replica


async def abort(alpha: Alpha, number: int, version: int) -> Replica:
    """Take the canary of a replica away, with its grants; do nothing if it was aborted before.

    Args:
        alpha: the running Alpha.
        number: id of the replica.
        version: id of the canary.

    Raises:
        InvalidInput: the replica does not exist.
        Conflict: the version is not the canary.
    """
    async with alpha.transaction() as tx:
        record = await find(alpha, number, also=[version])
        replica = record.value
        if replica.canary == version:
            stage_abort(tx, record)
        elif not any(v.id == version and v.canary_percent and v.rolled_back_to for v in replica.versions):
            raise _other_canary(replica, version)
    return replica


def _other_canary(replica: Replica, version: int) -> Conflict:
    present = "it has none" if replica.canary_version is None else f"that is version {replica.canary}"
    return Conflict(f"version {version} is not the canary of {replica.name}, {present}: see `reside replica list`")
