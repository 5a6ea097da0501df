"""The active versions of a replica: the current one, the canary, and those of which something may still run.

The member `activeVersions` of a replica's map names their maps: version id → id of the map. Passes, loads and calls
read only these, so a replica with a thousand old versions is read like one with two. `lastVersion` is the id of the
latest version, `lastHealthyVersion` that of the last one that is not active any more and was healthy. They are missing
for a replica of an earlier release, until a leader has written them.

Invariants: a version becomes active before it becomes the current one or the canary. It stops being active after it has
ended, is neither of them, and nothing of it is reported. Then it holds no grants and is listed as nobody's dependant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.alpha import lookups
from reside.alpha.health import is_target
from reside.model import lookup

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap, Json
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.status import VersionStatus

ACTIVE: Final = "activeVersions"
LAST: Final = "lastVersion"
LAST_HEALTHY: Final = "lastHealthyVersion"
_ENDED: Final[frozenset[VersionStatus]] = frozenset({"stopped", "completed"})


def active_maps(members: Mapping[str, object]) -> dict[int, str] | None:
    """Return the ids of the maps of the active versions, by version; None for a replica of an earlier release."""
    named = members.get(ACTIVE)
    return {int(number): str(co_id) for number, co_id in named.items()} if isinstance(named, dict) else None


def ended(replica: Replica, reported: Collection[int] = ()) -> list[ReplicaVersion]:
    """Return the versions that need not be active: ended, not wanted, and not reported. Pure.

    Args:
        replica: the replica with the versions that were read.
        reported: ids of the versions of which the Sentinel reports an object.
    """
    return [
        version
        for version in replica.versions
        if not replica.is_wanted(version) and version.status in _ENDED and version.id not in reported
    ]


def activate(replica: CoMap, number: int, version: str) -> None:
    """Make a version active, whose map has the id `version`, unless it is. The caller holds Alpha's lock.

    The replica is not of an earlier release: `keep_active` was called for it.
    """
    last = replica[LAST]
    active = {**replica[ACTIVE], str(number): version}
    _write(replica, {ACTIVE: active, LAST: max(number, last)})


def keep_active(
    replica: CoMap, record: Replica, versions: Mapping[int, CoMap], gone: Collection[ReplicaVersion]
) -> None:
    """Make all versions that were read active, except for these. The caller holds Alpha's lock.

    Args:
        replica: the replica's map.
        record: the replica with the versions that were read.
        versions: the maps of these versions.
        gone: the versions that have ended.
    """
    ids = {version.id for version in gone}
    healthy = max(record.last_healthy_version or 0, *(v.id for v in gone if is_target(v)), 0)
    members = {
        ACTIVE: {str(number): versions[number].id for number in sorted(versions) if number not in ids},
        LAST: max(record.last_version or 0, *versions, 0),
    }
    _write(replica, members | ({LAST_HEALTHY: healthy} if healthy else {}))


async def list_dependant(data: AlphaData, replica: CoMap, versions: Collection[ReplicaVersion]) -> None:
    """List a replica as a dependant of the replicas that these versions require. The caller holds Alpha's lock."""
    for number in sorted(providers(versions)):
        await lookups.add_target(data, lookup.dependants_of_replica(number), replica.id, replica["id"])


async def unlist_dependant(data: AlphaData, replica: CoMap, numbers: Collection[int]) -> None:
    """Remove a replica from the dependants of these replicas. The caller holds Alpha's lock."""
    for number in sorted(numbers):
        await lookups.remove_target(data, lookup.dependants_of_replica(number), replica.id)


def providers(versions: Collection[ReplicaVersion]) -> set[int]:
    """Return the ids of the replicas that these versions require."""
    required = (requirement for version in versions for requirement in version.requirements.values())
    return {choice.id for requirement in required for choice in requirement.replicas}


def _write(replica: CoMap, members: Mapping[str, Json]) -> None:
    replica.update({key: value for key, value in members.items() if replica.get(key) != value})
