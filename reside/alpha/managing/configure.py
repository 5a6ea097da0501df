"""What people change of a replica that exists. Each act is checked and stored under Alpha's lock.

The leader loop watches the maps that these acts write, so a change takes effect at once, whichever Alpha serves the
call. Every act is a setting of a value, so an act that is repeated changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import records
from reside.alpha.granting import direct
from reside.alpha.management import ENABLED, PLACEMENT_GROUP, PODS
from reside.model.errors import Conflict, InvalidInput, NotAllowed
from reside.model.identities import system_id

if TYPE_CHECKING:
    from collections.abc import Collection

    from reside.alpha.records import ReplicaRecord
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica


async def find(alpha: Alpha, number: int, *, also: Collection[int] = ()) -> ReplicaRecord:
    """Read the replica with this id and its active versions, and those with the ids in `also`.

    Raises:
        InvalidInput: it does not exist.
        Conflict: it is being deleted.
    """
    record = await records.find_active(alpha.data, number, also=also)
    if record is None:
        raise InvalidInput(f"replica {number} does not exist: see `reside replica list`")
    if record.value.deletion is not None:
        raise Conflict(f"replica {record.value.name} is being deleted")
    return record


async def set_enabled(alpha: Alpha, number: int, by: str, *, enabled: bool, is_manager: bool) -> Replica:
    """Enable or disable a replica. A disabled replica has no pods, and keeps its account and its grants.

    Args:
        alpha: the running Alpha.
        number: id of the replica.
        by: the account that does it.
        enabled: the new state.
        is_manager: whether this account manages all replicas. Its owner can't end what a manager has disabled.

    Raises:
        InvalidInput: the replica does not exist.
        Conflict: it is a part of the platform, which can't be disabled.
        NotAllowed: another account has disabled it.
    """
    async with alpha.transaction() as tx:
        record = await find(alpha, number)
        if not enabled and system_id(record.value.identity) is not None:
            raise Conflict(f"replica {record.value.name} is a part of ReSide and can't be disabled")
        if not is_manager and not _may_enable(record, by, alpha.account):
            raise NotAllowed(
                f"replica {record.value.name} was disabled by another account: only a manager of replicas enables it"
            )
        if not enabled:
            tx.stage(lambda: record.map.set("disabledBy", by))
        tx.stage(lambda: record.management.set(ENABLED, enabled))
    return record.value


def _may_enable(record: ReplicaRecord, owner: str, alpha: str) -> bool:
    """Return whether a replica is enabled, or was disabled by its owner with a call that Alpha has carried out."""
    edit = record.management.edit(ENABLED)
    is_own = edit is not None and edit.by == alpha and record.value.disabled_by == owner
    return record.value.management.enabled or is_own


async def set_placement(alpha: Alpha, number: int, group: str | None) -> Replica:
    """Run a replica on the nodes of a placement group; None for the cluster's default. Its pods are replaced.

    Raises:
        InvalidInput: the replica does not exist.
    """
    async with alpha.transaction() as tx:
        record = await find(alpha, number)
        tx.stage(lambda: record.management.set(PLACEMENT_GROUP, group))
    return record.value


async def set_pods(alpha: Alpha, number: int, pods: int) -> Replica:
    """Run a replica with a number of pods.

    Raises:
        InvalidInput: the replica does not exist.
        Conflict: it can't have several pods.
    """
    async with alpha.transaction() as tx:
        record = await find(alpha, number)
        info = record.value.info
        if pods > 1 and (info.kind == "oneshot" or not info.scalable):
            raise Conflict(f"replica {record.value.name} can't have {pods} pods, because it is not scalable")
        tx.stage(lambda: record.management.set(PODS, pods))
    return record.value


async def set_owner(alpha: Alpha, number: int, owner: str) -> Replica:
    """Give a replica to another owner.

    Raises:
        InvalidInput: the replica or the account does not exist.
    """
    await direct.check_exists(alpha.data, owner)
    async with alpha.transaction() as tx:
        record = await find(alpha, number)
        tx.stage(lambda: record.map.set("owner", owner))
    return record.value


async def refresh_template(alpha: Alpha, number: int, digest: str) -> Replica:
    """Roll out the pod template that Alpha renders now for the current version of a replica.

    Args:
        alpha: the running Alpha.
        number: id of the replica.
        digest: digest of the template, as the caller saw it (`ReplicaVersion.template_change`).

    Raises:
        InvalidInput: the replica does not exist.
        Conflict: the template is another one now, or it changes nothing.
    """
    async with alpha.transaction() as tx:
        record = await find(alpha, number)
        replica = record.value
        current = replica.current_version
        change = None if current is None else replica.version(current).template_change
        if change is None:
            raise Conflict(f"the pod template of replica {replica.name} is up to date")
        if change.digest != digest:
            raise Conflict(f"the pod template of replica {replica.name} is another one now: look at its changes again")
        tx.stage(lambda: record.map.set("template", digest))
    return replica
