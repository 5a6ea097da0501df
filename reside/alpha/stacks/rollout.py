"""The rollout: which versions of a replica have a workload, and which of the workloads run. Pure.

It depends on the current statuses only and keeps no state:

* scalable: old versions keep running until the current one is up; then they stop;
* not scalable: old versions stop immediately, and the current one starts when all of them have stopped;
* disabled: all versions stop;
* an old version that has stopped, or has failed and is not needed, has no workload.

Invariants: the current version always has a workload; the rollout never runs two versions of a replica that is not
scalable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.status import VersionStatus

GONE: frozenset[VersionStatus] = frozenset({"stopped", "completed", "unknown"})
"""Statuses of an old version that needs no workload, because nothing of it runs."""

UP: frozenset[VersionStatus] = frozenset({"running", "completed"})
"""Statuses of a current version that replaces the old ones."""

Rollout = dict[int, bool]
"""Version id → whether the workload runs or is scaled to 0; other versions have no workload."""


def rollout(replica: Replica) -> Rollout:
    """Return which versions have a workload, and which of the workloads run."""
    if replica.current_version is None:
        return {}
    current = replica.version(replica.current_version)
    remaining = [v for v in replica.versions if v.id != current.id and v.status not in GONE]
    if not replica.management.enabled:
        return _down(remaining) | {current.id: False}
    if not replica.info.scalable:
        return _down(remaining) | {current.id: not remaining}
    if current.status in UP:
        return _down(remaining) | {current.id: True}
    # A version that is stopping is not started again, even if the current one becomes degraded.
    return {version.id: version.status != "stopping" for version in remaining} | {current.id: True}


def _down(versions: Iterable[ReplicaVersion]) -> Rollout:
    """Scale old versions to 0, except for failed ones, whose workload is removed.

    A failed version may never reach 0 pods. It delays the current version of a replica that is not scalable until the
    Sentinel reports that its object is gone.
    """
    return {version.id: False for version in versions if version.status != "error"}
