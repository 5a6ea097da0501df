"""Which versions of a replica must have a workload, and whether it runs: the whole rollout logic, pure.

It reads nothing but the statuses in force and keeps nothing, so whoever asks at any time gets the same answer:

* scalable: every living old version runs on until the current one is up; then the old ones stop;
* not scalable: old versions stop at once, and the current one starts when all of them have stopped;
* disabled: everything stops;
* an old version that has stopped, or failed and is no longer needed, has no workload any more.

Invariants: the current version always has a workload; a non-scalable replica never runs two versions by our doing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.status import VersionStatus

GONE: frozenset[VersionStatus] = frozenset({"stopped", "completed", "unknown"})
"""Statuses of an old version that needs no workload: nothing of it runs."""

UP: frozenset[VersionStatus] = frozenset({"running", "completed"})
"""Statuses of a current version that takes over from the older ones."""

Rollout = dict[int, bool]
"""Version id → whether it shall run (1 pod) or stand at 0; a version that is missing has no workload."""


def rollout(replica: Replica) -> Rollout:
    """Which versions have a workload, and which of them run."""
    if replica.current_version is None:
        return {}
    current = replica.version(replica.current_version)
    living = [v for v in replica.versions if v.id != current.id and v.status not in GONE]
    if not replica.management.enabled:
        return _down(living) | {current.id: False}
    if not replica.info.scalable:
        return _down(living) | {current.id: not living}
    if current.status in UP:
        return _down(living) | {current.id: True}
    # one that began to stop is not started again because the new one stumbles
    return {version.id: version.status != "stopping" for version in living} | {current.id: True}


def _down(versions: Iterable[ReplicaVersion]) -> Rollout:
    """Old versions at 0, all but the failed ones.

    A failed one may never get to 0, so its workload goes at once; the version counts as living until the Sentinel has
    reported that the object is no more.
    """
    return {version.id: False for version in versions if version.status != "error"}
