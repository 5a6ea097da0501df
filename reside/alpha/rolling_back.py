"""Roll back by itself: the last healthy version becomes current again, with its grants and requirements.

The failed version is marked first. So the load that created it does not make it current again, and an Alpha that dies
between the two writes is followed by one that finishes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from reside.alpha import records
from reside.alpha.active_versions import activate, list_dependant
from reside.alpha.health import roll_back_target
from reside.alpha.versions import index_versions

if TYPE_CHECKING:
    from reside.alpha.records import ReplicaRecord
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica

_log = structlog.get_logger(__name__)


async def roll_back(alpha: Alpha, record: ReplicaRecord, replica: Replica) -> bool:
    """Make the last healthy version current if the current one has failed and is to be rolled back; return whether.

    Args:
        alpha: the running Alpha.
        record: the replica's record.
        replica: the replica with the present statuses of its versions.
    """
    if roll_back_target(replica, alpha.node.now_ms()) is None:
        return False
    async with alpha.transaction() as tx:
        present = await records.read_active(alpha.data, record.map.id)
        target = roll_back_target(present.value, alpha.node.now_ms())
        failed = present.value.current_version
        if target is None or failed is None:
            return False
        present = await records.read_active(alpha.data, record.map.id, also=[target])
        await tx.run_exclusively(lambda: _prepare(alpha, present, target))
        tx.stage(lambda: present.versions[failed].set("rolledBackTo", target))
        tx.stage(lambda: activate(present.map, target, present.versions[target].id))
        tx.stage(lambda: present.map.set("currentVersion", target))
    reason = present.value.version(failed).reason
    _log.warning("rolled back", replica=present.value.name, version=failed, to=target, reason=reason)
    return True


async def _prepare(alpha: Alpha, present: ReplicaRecord, target: int) -> None:
    """Write what must be there before a version becomes active again. The caller holds Alpha's lock."""
    await index_versions(alpha.data, present)
    await list_dependant(alpha.data, present.map, [present.value.version(target)])
