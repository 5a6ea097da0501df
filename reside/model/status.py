"""The status of a version, computed from live objects by pure functions (docs/model.md, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.reports import ObjectReport

VersionStatus = Literal[
    "unknown", "starting", "running", "degraded", "running-outdated", "completed", "stopping", "stopped", "error"
]
FINAL: frozenset[VersionStatus] = frozenset({"completed", "stopped", "error", "unknown"})


def _true(status: dict[str, Any], condition: str) -> bool:
    return any(c.get("type") == condition and c.get("status") == "True" for c in status.get("conditions") or ())


def deployment_status(live: dict[str, Any], *, current: bool, remaining: int | None = None) -> VersionStatus:
    """Return the status of a version that runs as this Deployment, of which this number of pods have not ended.

    A version has stopped when no pod of it is left: pods that terminate still run, but the Deployment no longer counts
    them. As long as the number is not known (None), it has not stopped.
    """
    spec, status = live.get("spec") or {}, live.get("status") or {}
    desired, pods, ready = spec.get("replicas", 1), status.get("replicas") or 0, status.get("readyReplicas") or 0
    observed = status.get("observedGeneration", 0) >= (live.get("metadata") or {}).get("generation", 0)
    if _true(status, "ReplicaFailure"):
        return "error"
    if desired == 0:
        return "stopped" if observed and not pods and remaining == 0 else "stopping"
    if not current and _true(status, "Available"):
        return "running-outdated"
    if observed and _true(status, "Available") and ready >= desired:
        return "running"
    return "degraded" if ready else "starting"


def job_status(live: dict[str, Any], *, remaining: int | None = None) -> VersionStatus:
    """Return the status of a version that runs as this Job; suspending it is like scaling a Deployment to 0."""
    status = live.get("status") or {}
    if _true(status, "Failed"):
        return "error"
    if _true(status, "Complete"):
        return "completed"
    if (live.get("spec") or {}).get("suspend"):
        return "stopped" if not status.get("active") and remaining == 0 else "stopping"
    return "running" if status.get("active") else "starting"


def version_status(report: ObjectReport | None, *, current: bool) -> VersionStatus:
    """Return the status of a version whose workload the Sentinel reports as `report`; None: there is no object."""
    if report is None:
        return "unknown"
    if report.status == "error":
        return "error"
    if report.live is None:
        return "starting" if current else "unknown"
    return (
        deployment_status(report.live, current=current, remaining=report.pods)
        if report.live.get("kind") == "Deployment"
        else job_status(report.live, remaining=report.pods)
    )


def workload_problem(report: ObjectReport | None) -> str | None:
    """Return why a workload does not run, as the Sentinel or Kubernetes gives it; None if it is not known.

    The Sentinel's own error comes first, then what its controller reports (such as an exceeded quota), then its pods.
    """
    if report is None:
        return None
    conditions = ((report.live or {}).get("status") or {}).get("conditions") or ()
    failed = [c for c in conditions if c.get("type") in ("ReplicaFailure", "Failed") and c.get("status") == "True"]
    controller = [f"{c.get('reason')}: {c.get('message')}" for c in failed]
    return report.error or next(iter(controller), None) or report.problem


def is_stable(current: VersionStatus | None, others: Iterable[VersionStatus]) -> bool:
    """Return whether a replica is stable: its current version runs or has completed, every other version is final."""
    return current in ("running", "completed") and all(status in FINAL for status in others)
