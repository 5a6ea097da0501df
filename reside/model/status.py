"""Version statuses out of live objects: the rules of docs/model.md, section 3 as pure functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.model.stacks import ObjectReport

VersionStatus = Literal[
    "unknown", "starting", "running", "degraded", "running-outdated", "completed", "stopping", "stopped", "error"
]
FINAL: frozenset[VersionStatus] = frozenset({"completed", "stopped", "error", "unknown"})


def _true(status: dict[str, Any], condition: str) -> bool:
    return any(c.get("type") == condition and c.get("status") == "True" for c in status.get("conditions") or ())


def deployment_status(live: dict[str, Any], *, current: bool) -> VersionStatus:
    """Status of a version that runs as this Deployment."""
    spec, status = live.get("spec") or {}, live.get("status") or {}
    wanted, pods, ready = spec.get("replicas", 1), status.get("replicas") or 0, status.get("readyReplicas") or 0
    observed = status.get("observedGeneration", 0) >= (live.get("metadata") or {}).get("generation", 0)
    if _true(status, "ReplicaFailure"):
        return "error"
    if wanted == 0:
        # pods on their way out are no replicas any more, but run; before Kubernetes 1.35 a feature gate tells of them
        left = pods + (status.get("terminatingReplicas") or 0)
        return "stopping" if left or not observed else "stopped"
    if not current and _true(status, "Available"):
        return "running-outdated"
    if observed and _true(status, "Available") and ready >= wanted:
        return "running"
    return "degraded" if ready else "starting"


def job_status(live: dict[str, Any]) -> VersionStatus:
    """Status of a version that runs as this Job; a suspended one is told to stop, like a Deployment at 0."""
    status = live.get("status") or {}
    if _true(status, "Failed"):
        return "error"
    if _true(status, "Complete"):
        return "completed"
    if (live.get("spec") or {}).get("suspend"):
        return "stopping" if status.get("active") else "stopped"
    return "running" if status.get("active") else "starting"


def version_status(report: ObjectReport | None, *, current: bool) -> VersionStatus:
    """Status of a version whose workload the Sentinel reports as ``report`` (None: no object)."""
    if report is None:
        return "unknown"
    if report.status == "error":
        return "error"
    if report.live is None:
        return "starting" if current else "unknown"
    return (
        deployment_status(report.live, current=current)
        if report.live.get("kind") == "Deployment"
        else job_status(report.live)
    )


def is_stable(current: VersionStatus | None, others: Iterable[VersionStatus]) -> bool:
    """A replica is stable when its current version runs (or completed) and every other version is final."""
    return current in ("running", "completed") and all(status in FINAL for status in others)
