"""States of live objects of all thirteen kinds, as a table."""

from __future__ import annotations

from typing import Any

import pytest

from reside.model.kinds import BY_KIND
from reside.model.object_state import object_state
from reside.model.object_trouble import object_trouble


def obj(kind: str, spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **meta: Any) -> Any:
    return {
        "kind": kind,
        "metadata": {"name": "a", "generation": 2, **meta},
        "spec": spec or {},
        "status": status or {},
    }


def conditions(**found: tuple[str, str, str]) -> list[dict[str, str]]:
    """Return conditions: type → status, reason, message."""
    return [
        {"type": kind, "status": status, "reason": reason, "message": message}
        for kind, (status, reason, message) in found.items()
    ]


ROLLED_OUT = ("True", "NewReplicaSetAvailable", "it has progressed")
AVAILABLE = ("True", "MinimumReplicasAvailable", "it has minimum availability")


def deployment(pods: int, updated: int, available: int, ready: int, **found: tuple[str, str, str]) -> dict[str, Any]:
    """Return a Deployment of two pods, with its status."""
    known = {"Progressing": ROLLED_OUT, "Available": AVAILABLE} | found
    counts = {"replicas": pods, "updatedReplicas": updated, "availableReplicas": available, "readyReplicas": ready}
    status = counts | {"observedGeneration": 2, "conditions": conditions(**known)}
    made: dict[str, Any] = obj("Deployment", {"replicas": 2}, status)
    return made


def stateful_set(pods: int, ready: int, updated: int, *, equal: bool = False, **spec: Any) -> dict[str, Any]:
    """Return a StatefulSet of two pods, with its status; `equal`: its pods have the last revision."""
    revisions = {"currentRevision": "r2" if equal else "r1", "updateRevision": "r2"}
    status = {"replicas": pods, "readyReplicas": ready, "updatedReplicas": updated, "observedGeneration": 2} | revisions
    made: dict[str, Any] = obj("StatefulSet", {"replicas": 2, **spec}, status)
    return made


def job(*, suspend: bool = False, **status: Any) -> dict[str, Any]:
    made: dict[str, Any] = obj("Job", {"suspend": suspend}, status)
    return made


STARTED = {"startTime": "2026-01-01T00:00:00Z"}
ROLLING = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}
QUOTA = 'pods "a-1" is forbidden: exceeded quota: q'


def route(**found: tuple[str, str, str]) -> dict[str, Any]:
    return obj("HTTPRoute", status={"parents": [{"conditions": conditions(**found)}]})


TABLE: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "a Deployment that is rolled out": (deployment(2, 2, 2, 2), "current", None),
    "a Deployment that nobody has seen": (
        obj("Deployment", {"replicas": 2}),
        "in-progress",
        "the controller has not seen it yet",
    ),
    "a change that is not observed": (
        deployment(2, 2, 2, 2) | {"metadata": {"generation": 3}},
        "in-progress",
        "the change is not observed yet",
    ),
    "a Deployment with too few pods": (deployment(1, 1, 1, 1), "in-progress", "1 of 2 pods exist"),
    "a Deployment with old pods": (deployment(2, 1, 2, 2), "in-progress", "1 of 2 pods are updated"),
    "a Deployment with too many pods": (deployment(3, 2, 2, 3), "in-progress", "1 pods are to end"),
    "a Deployment with pods that are too new": (deployment(2, 2, 1, 2), "in-progress", "1 of 2 pods are available"),
    "a Deployment with a pod that is not ready": (deployment(2, 2, 2, 1), "in-progress", "1 of 2 pods are ready"),
    "a Deployment that goes on": (
        deployment(2, 2, 2, 2, Progressing=("True", "ReplicaSetUpdated", "it goes on")),
        "in-progress",
        "ReplicaSetUpdated: it goes on",
    ),
    "a Deployment that is not available": (
        deployment(2, 2, 2, 2, Available=("False", "MinimumReplicasUnavailable", "no")),
        "in-progress",
        "MinimumReplicasUnavailable: no",
    ),
    "a Deployment over its deadline": (
        deployment(2, 1, 1, 1, Progressing=("False", "ProgressDeadlineExceeded", "timed out")),
        "failed",
        "ProgressDeadlineExceeded: timed out",
    ),
    "a Deployment over its quota": (
        deployment(0, 0, 0, 0, ReplicaFailure=("True", "FailedCreate", QUOTA)),
        "failed",
        f"FailedCreate: {QUOTA}",
    ),
    "a Deployment of no pods": (
        obj("Deployment", {"replicas": 0}, {"observedGeneration": 2, "conditions": conditions(Available=AVAILABLE)}),
        "current",
        None,
    ),
    "a StatefulSet that is rolled out": (stateful_set(2, 2, 2, equal=True), "current", None),
    "a StatefulSet that nobody has seen": (
        obj("StatefulSet", {"replicas": 2}),
        "in-progress",
        "the controller has not seen it yet",
    ),
    "a StatefulSet with too few pods": (stateful_set(1, 1, 1, equal=True), "in-progress", "1 of 2 pods exist"),
    "a StatefulSet with a pod that is not ready": (stateful_set(2, 1, 2), "in-progress", "1 of 2 pods are ready"),
    "a StatefulSet with too many pods": (stateful_set(3, 3, 2, equal=True), "in-progress", "1 pods are to end"),
    "a StatefulSet with old pods": (stateful_set(2, 2, 1), "in-progress", "1 of 2 pods are updated"),
    "a StatefulSet that updates half": (stateful_set(2, 2, 1, **ROLLING), "current", None),
    "a StatefulSet that is to update half": (
        stateful_set(2, 2, 0, **ROLLING),
        "in-progress",
        "0 of 1 pods are updated",
    ),
    "a StatefulSet that updates on deletion": (
        stateful_set(2, 2, 0, updateStrategy={"type": "OnDelete"}),
        "current",
        None,
    ),
    "a route that no gateway has seen": (obj("HTTPRoute"), "in-progress", "no gateway has accepted it yet"),
    "a route that is served": (route(Accepted=("True", "", ""), ResolvedRefs=("True", "", "")), "current", None),
    "a route that its gateway refuses": (
        route(Accepted=("False", "NotAllowedByListeners", "other namespaces")),
        "failed",
        "NotAllowedByListeners: other namespaces",
    ),
    "a route to a Service that does not exist": (
        route(Accepted=("True", "", ""), ResolvedRefs=("False", "BackendNotFound", "no Service")),
        "failed",
        "BackendNotFound: no Service",
    ),
    "a Job that has not started": (job(), "in-progress", "it has not started"),
    "a Job without pods": (job(**STARTED), "in-progress", "it has no pods yet"),
    "a Job whose pod is not ready": (job(**STARTED, active=1, ready=0), "in-progress", "0 of 1 pods are ready"),
    "a Job that runs": (job(**STARTED, active=1, ready=1), "current", None),
    "a Job that is suspended": (job(suspend=True), "current", None),
    "a Job that is complete": (job(**STARTED, conditions=conditions(Complete=("True", "", ""))), "current", None),
    "a Job that has failed": (
        job(**STARTED, conditions=conditions(Failed=("True", "BackoffLimitExceeded", "too often"))),
        "failed",
        "BackoffLimitExceeded: too often",
    ),
    "a claim that is bound": (obj("PersistentVolumeClaim", {}, {"phase": "Bound"}), "current", None),
    "a claim that is not bound": (
        obj("PersistentVolumeClaim", {}, {"phase": "Pending"}),
        "in-progress",
        "it is not bound to a volume",
    ),
    "a claim without its volume": (
        obj("PersistentVolumeClaim", {"volumeName": "v"}, {"phase": "Lost"}),
        "failed",
        "its volume v is lost",
    ),
    "a claim that is resized": (
        obj("PersistentVolumeClaim", {}, {"phase": "Bound", "conditions": conditions(Resizing=("True", "", ""))}),
        "in-progress",
        "it is resized",
    ),
    "a Service": (obj("Service", {"type": "ClusterIP"}), "current", None),
    "a load balancer without an address": (
        obj("Service", {"type": "LoadBalancer"}),
        "in-progress",
        "it has no address yet",
    ),
    "a load balancer": (
        obj("Service", {"type": "LoadBalancer"}, {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}}),
        "current",
        None,
    ),
    "an object that ends": (obj("Secret", deletionTimestamp="2026-01-01T00:00:00Z"), "terminating", None),
    "an object that can't end": (
        obj("ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a", "b"]),
        "terminating",
        "waits for the finalizers a, b",
    ),
} | {
    f"an object of the kind {kind}": (obj(kind), "current", None)
    for kind in ("ConfigMap", "Secret", "Ingress", "NetworkPolicy", "ServiceAccount", "Role", "RoleBinding")
}


@pytest.mark.parametrize("what", TABLE)
def test_the_state_follows_from_the_live_object(what: str) -> None:
    live, state, reason = TABLE[what]
    assert tuple(object_state(live)) == (state, reason)


def test_the_table_has_every_kind() -> None:
    assert {live["kind"] for live, _, _ in TABLE.values()} == set(BY_KIND)


@pytest.mark.parametrize("what", TABLE)
def test_the_trouble_of_pods_and_events_is_the_reason_of_what_is_in_progress_alone(what: str) -> None:
    """The trouble of an earlier generation is not that of a change that nobody has observed."""
    live, state, reason = TABLE[what]
    is_reported = state == "in-progress" and what != "a change that is not observed"
    found = object_state(live, "ImagePullBackOff: not found")
    assert found == (state, "ImagePullBackOff: not found" if is_reported else reason)


@pytest.mark.parametrize(
    ("kind", "reason", "message", "expected"),
    [
        (
            "StatefulSet",
            "FailedCreate",
            f"create Pod a-1 in StatefulSet a failed error: {QUOTA}",
            "FailedCreate: exceeded quota: q",
        ),
        ("Job", "FailedCreate", f"Error creating: {QUOTA}", "FailedCreate: exceeded quota: q"),
        ("Job", "FailedCreate", "x\n" * 999, f"FailedCreate: {('x ' * 150)}"),
        ("PersistentVolumeClaim", "ProvisioningFailed", 'storageclass "x" not found', None),
        ("StatefulSet", "FailedCreate", None, "FailedCreate"),
        ("Deployment", "FailedCreate", "no", ""),
        ("Job", "BackoffLimitExceeded", "no", ""),
        ("Pod", "FailedCreate", "no", ""),
        (None, None, None, ""),
    ],
)
def test_an_event_says_why_an_object_gets_no_pods_or_no_volume(
    kind: Any, reason: Any, message: Any, expected: str | None
) -> None:
    event = {"involvedObject": {"kind": kind}, "reason": reason, "message": message}
    wanted = f"{reason}: {message}" if expected is None else expected or None
    assert object_trouble(event) == wanted
