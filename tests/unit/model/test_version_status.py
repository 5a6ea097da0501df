"""Version statuses from live objects (docs/model.md, section 3)."""

from __future__ import annotations

from typing import Any

import pytest

from reside.model.reports import ObjectReport
from reside.model.status import is_stable, version_status


def deployment(
    replicas: int, pods: int = 0, ready: int = 0, *, seen: bool = True, terminating: int | None = 0, **conditions: str
) -> ObjectReport:
    """Return a report; `terminating` pods are left that the Deployment does not count, None if that is not known."""
    status = {
        "replicas": pods,
        "readyReplicas": ready,
        "observedGeneration": 2 if seen else 1,
        "conditions": [{"type": name, "status": value} for name, value in conditions.items()],
    }
    live = {"kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": replicas}, "status": status}
    return ObjectReport("updated", live, None, None if terminating is None else pods + terminating)


def job(*, suspend: bool = False, active: int = 0, pods: int | None = None, **conditions: str) -> ObjectReport:
    found = [{"type": name, "status": value} for name, value in conditions.items()]
    status: dict[str, Any] = {"active": active, "conditions": found}
    live = {"kind": "Job", "spec": {"suspend": suspend}, "status": status}
    return ObjectReport("updated", live, None, active if pods is None else pods)


@pytest.mark.parametrize(
    ("report", "current", "status"),
    [
        (None, True, "unknown"),
        (ObjectReport("error", None, "refused"), True, "error"),
        (ObjectReport("requested"), True, "starting"),
        (ObjectReport("requested"), False, "unknown"),
        (deployment(1, ReplicaFailure="True"), True, "error"),
        (deployment(1), True, "starting"),
        (deployment(1, 1, 0, Available="False"), True, "starting"),
        (deployment(1, 1, 1, Available="True"), True, "running"),
        (deployment(2, 2, 1, Available="False"), True, "degraded"),
        (deployment(1, 1, 1, seen=False, Available="True"), True, "degraded"),
        (deployment(1, 1, 1, Available="True"), False, "running-outdated"),
        (deployment(0, 1, 1, Available="True"), False, "stopping"),
        (deployment(0), False, "stopped"),
        (deployment(0, seen=False), False, "stopping"),
        (deployment(0, terminating=1), False, "stopping"),
        (deployment(0, terminating=None), False, "stopping"),
        (deployment(0, 1), True, "stopping"),
        (deployment(0), True, "stopped"),
        (job(), True, "starting"),
        (job(active=1), True, "running"),
        (job(Complete="True"), True, "completed"),
        (job(Failed="True"), True, "error"),
        (job(suspend=True, active=1), False, "stopping"),
        (job(suspend=True), False, "stopped"),
        (job(suspend=True, pods=1), False, "stopping"),
        (job(suspend=True, Complete="True"), False, "completed"),
    ],
)
def test_status(report: ObjectReport | None, current: bool, status: str) -> None:
    assert version_status(report, current=current) == status


def test_stable_means_current_runs_and_the_rest_is_final() -> None:
    assert is_stable("running", ["stopped", "completed", "error"])
    assert is_stable("completed", [])
    assert not is_stable("running", ["running-outdated"])
    assert not is_stable("starting", [])
    assert not is_stable(None, [])
