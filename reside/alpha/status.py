"""The statuses of a replica's versions, computed from the Sentinel's report of its stack. Pure.

Live state decides, with exceptions that depend on history: a version without an object and without pods has stopped, if
the Sentinel has applied the desired stack and the object is not in it; a completed version stays completed; and a
version that was not healthy in time has failed (`reside.alpha.health`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha.health import with_health
from reside.alpha.stacks import system
from reside.alpha.stacks.rollout import rollout
from reside.model.names import workload_name
from reside.model.stacks import object_key
from reside.model.status import version_status, workload_problem

if TYPE_CHECKING:
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.stacks import DesiredStack, K8sObject, StackReport
    from reside.model.status import VersionStatus


def changed_versions(
    replica: Replica, stack: DesiredStack, report: StackReport, now_ms: int
) -> dict[int, ReplicaVersion]:
    """Return the versions whose status, or what follows from it, has changed, by id.

    Args:
        replica: the replica with its versions.
        stack: its desired stack.
        report: the Sentinel's report of that stack.
        now_ms: the current time.
    """
    if not system.is_rendered(replica.identity):
        return {}
    plan = rollout(replica)
    found = {}
    for version in replica.versions:
        seen = report.objects.get(_key(replica, version))
        found[version.id] = with_health(
            version,
            _status(replica, version, stack, report),
            workload_problem(seen) or (report.error if version.id == replica.current_version else None),
            should_run=plan.get(version.id, False),
            is_tried=seen is not None and (seen.error is not None or _is_scaled_up(seen.live)),
            now_ms=now_ms,
        )
    return {version.id: found[version.id] for version in replica.versions if found[version.id] != version}


def newly_starting(replica: Replica, stack: DesiredStack) -> dict[int, VersionStatus]:
    """Return `starting` for the current version if it is declared, but has not been reported.

    With this status the version counts as running for the rollout, so that the next version does not start beside it.
    """
    if replica.current_version is None:
        return {}
    version = replica.version(replica.current_version)
    declared = _declared(replica, version, stack)
    is_new = version.status == "unknown" or (version.status == "stopped" and _is_scaled_up(declared))
    return {version.id: "starting"} if declared is not None and is_new else {}


def _key(replica: Replica, version: ReplicaVersion) -> str:
    return f"{'Job' if replica.info.kind == 'oneshot' else 'Deployment'}/{workload_name(replica.name, version.id)}"


def _declared(replica: Replica, version: ReplicaVersion, stack: DesiredStack) -> K8sObject | None:
    """Return the workload of a version in the desired stack."""
    key = _key(replica, version)
    return next((manifest for manifest in stack.objects if object_key(manifest) == key), None)


def _is_scaled_up(workload: K8sObject | None) -> bool:
    """Return whether a Deployment or Job should have pods."""
    spec = (workload or {}).get("spec") or {}
    return workload is not None and spec.get("replicas") != 0 and not spec.get("suspend")


def _status(replica: Replica, version: ReplicaVersion, stack: DesiredStack, report: StackReport) -> VersionStatus:
    current = version.id == replica.current_version
    key = _key(replica, version)
    seen = report.objects.get(key)
    if version.status == "completed":
        return "completed"
    if seen is not None and seen.live is None and seen.pods:
        return version.status  # its object is deleted, but its pods still run
    declared = _declared(replica, version, stack)
    if seen is not None:
        status = version_status(seen, current=current)
        is_behind = current and status in ("stopping", "stopped") and _is_scaled_up(declared)
        return "starting" if is_behind else status
    if declared is not None:
        return "error" if current and report.error else version.status
    applied = report.revision == stack.revision
    return "stopped" if applied and not (current and version.status == "unknown") else version.status
