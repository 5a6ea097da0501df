"""The statuses of a replica's versions, computed from the Sentinel's report of its stack. Pure.

Live state decides, with exceptions that depend on history: a version without an object and without pods has stopped, if
the Sentinel has applied the desired stack and the object is not in it; it stays stopped while its object is being
deleted; a completed version stays completed; and a version that was not healthy in time has failed
(`reside.alpha.health`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha.health import with_health
from reside.alpha.stacks import system
from reside.alpha.stacks.pods import pods_of
from reside.alpha.stacks.rollout import rollout
from reside.model.names import workload_name
from reside.model.stacks import object_key
from reside.model.status import version_status, workload_problem

if TYPE_CHECKING:
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.reports import ObjectReport, StackReport
    from reside.model.stacks import DesiredStack, K8sObject
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
            workload_problem(seen) or (report.error if replica.is_wanted(version) else None),
            should_run=plan.get(version.id, False),
            is_tried=seen is not None and (seen.error is not None or _is_scaled_up(seen.live)),
            now_ms=now_ms,
        )
    return {version.id: found[version.id] for version in replica.versions if found[version.id] != version}


def reported_versions(replica: Replica, report: StackReport) -> set[int]:
    """Return the ids of the versions of whose workload the report has something, up to the latest version."""
    last = max(replica.last_version or 0, *(version.id for version in replica.versions), 0)
    kind = "Job" if replica.info.kind == "oneshot" else "Deployment"
    prefix = f"{kind}/{workload_name(replica.name, 0).removesuffix('0')}"
    numbers = (key.removeprefix(prefix) for key in report.objects if key.startswith(prefix))
    return {int(number) for number in numbers if number.isdecimal() and 0 < int(number) <= last}


def newly_starting(replica: Replica, stack: DesiredStack) -> dict[int, VersionStatus]:
    """Return `starting` for the current version and the canary if they are declared, but have not been reported.

    With this status a version counts as running for the rollout, so that the next version does not start beside it.
    """
    return {v.id: "starting" for v in replica.versions if replica.is_wanted(v) and _is_new(replica, v, stack)}


def _is_new(replica: Replica, version: ReplicaVersion, stack: DesiredStack) -> bool:
    declared = _declared(replica, version, stack)
    is_new = version.status == "unknown" or (version.status == "stopped" and _is_scaled_up(declared))
    return declared is not None and is_new


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


def _stays_stopped(version: ReplicaVersion, seen: ObjectReport) -> bool:
    """Return whether a version that has stopped has nothing that runs, although its object is not deleted yet.

    Its pods are counted no more then, and its controller may not have observed the deletion.
    """
    return version.status == "stopped" and not seen.pods and not _is_scaled_up(seen.live)


def _has_too_few(replica: Replica, version: ReplicaVersion, workload: K8sObject | None) -> bool:
    """Return whether a live Deployment does not have all the pods that a version should have now."""
    spec = (workload or {}).get("spec") or {}
    return replica.info.kind != "oneshot" and spec.get("replicas", 1) < pods_of(replica, version)


def _status(replica: Replica, version: ReplicaVersion, stack: DesiredStack, report: StackReport) -> VersionStatus:
    wanted = replica.is_wanted(version)
    key = _key(replica, version)
    seen = report.objects.get(key)
    if version.status == "completed":
        return "completed"
    declared = _declared(replica, version, stack)
    if seen is not None and (
        (seen.live is None and seen.pods)  # its object is deleted, but its pods still run
        or (declared is None and not wanted and _stays_stopped(version, seen))
    ):
        return version.status
    if seen is not None:
        status = version_status(seen, current=wanted)
        if wanted and status in ("stopping", "stopped") and _is_scaled_up(declared):
            return "starting"
        # So a version that gets more pods replaces no other one before it has them.
        return "degraded" if wanted and status == "running" and _has_too_few(replica, version, seen.live) else status
    if declared is not None:
        return "error" if wanted and report.error else version.status
    applied = report.revision == stack.revision
    return "stopped" if applied and not (wanted and version.status == "unknown") else version.status
