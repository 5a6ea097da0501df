"""The rollout: which versions of a replica have a workload, and which of the workloads run. Pure.

It depends on the current statuses only and keeps no state:

* scalable: old versions keep running until the current one is up; then they stop;
* not scalable: old versions stop immediately, and the current one starts when all of them have stopped;
* the canary runs beside the current version, whatever the status of either is;
* disabled: all versions stop;
* a version that was rolled back, or a canary that was aborted, stops immediately;
* an old version that has stopped, or has failed and is not needed, has no workload.

Invariants: the current version always has a workload; the rollout never runs two versions of a replica that is not
scalable, which has no canary.
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
    old = [v for v in replica.versions if not replica.is_wanted(v) and v.status not in GONE]
    enabled, scalable = replica.management.enabled, replica.info.scalable
    replaced = not enabled or not scalable or current.status in UP
    kept = [] if replaced else [version for version in old if version.rolled_back_to is None]
    plan = _down(version for version in old if version not in kept)
    # A version that is stopping is not started again, even if the current one becomes degraded.
    plan |= {version.id: version.status != "stopping" for version in kept}
    return plan | {v.id: enabled and (scalable or not old) for v in replica.versions if replica.is_wanted(v)}


def _down(versions: Iterable[ReplicaVersion]) -> Rollout:
    """Scale old versions to 0, except for failed ones, whose workload is removed.

    A failed version may never reach 0 pods. It delays the current version of a replica that is not scalable until the
    Sentinel reports that its object is gone.
    """
    return {version.id: False for version in versions if version.status != "error"}
