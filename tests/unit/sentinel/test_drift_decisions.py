"""Pure decisions about one object from its desired and its live state."""

from typing import Any

from reside.sentinel.guard.drift import ObjectState, decide, fingerprint, managers, taken_over
from reside.sentinel.objects.identity import is_finished_job

DESIRED: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "labels": {"a": "1"}},
    "spec": {"replicas": 1},
}


def entry(manager: str, fields: dict[str, Any], operation: str = "Update", **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsV1": fields, **more}


OURS = entry("kubernetes-sentinel", {"f:spec": {"f:replicas": {}}}, "Apply", time="2026-01-01T00:00:00Z")


def live(*entries: dict[str, Any], spec: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    return {
        **DESIRED,
        "metadata": {**DESIRED["metadata"], "resourceVersion": "1", "managedFields": list(entries), **meta},
        "spec": spec or {"replicas": 1, "strategy": {}},
        "status": {"replicas": 1},
    }


def test_an_object_of_no_stack_is_left_alone() -> None:
    assert decide(ObjectState(None, live(OURS))) == "leave"


def test_a_missing_object_is_created_unless_it_is_a_job_that_has_ended() -> None:
    assert decide(ObjectState(DESIRED, None)) == "create"
    assert decide(ObjectState(DESIRED, None, finished=True)) == "leave"


def test_a_terminating_object_is_waited_for() -> None:
    assert decide(ObjectState(DESIRED, live(OURS, deletionTimestamp="2026-01-01T00:00:00Z"))) == "leave"


def test_an_object_without_drift_is_not_applied_again() -> None:
    found = live(OURS)
    verified = fingerprint(DESIRED, found)
    assert decide(ObjectState(DESIRED, found, verified)) == "leave"
    assert decide(ObjectState(DESIRED, found)) == "apply"
    assert decide(ObjectState({**DESIRED, "spec": {"replicas": 2}}, found, verified)) == "apply"
    assert decide(ObjectState(DESIRED, live(OURS, spec={"replicas": 3}), verified)) == "apply"


def test_status_versions_and_annotations_of_controllers_are_no_drift() -> None:
    found = live(OURS)
    busy = live(OURS, entry("kube-controller-manager", {"f:status": {}}), resourceVersion="2", annotations={"rev": "1"})
    busy["status"] = {"replicas": 0}
    assert fingerprint(DESIRED, busy) == fingerprint(DESIRED, found)


def test_a_changed_label_of_ours_and_a_field_set_manually_are_drift() -> None:
    found = fingerprint(DESIRED, live(OURS))
    assert fingerprint(DESIRED, live(OURS, labels={"a": "2"})) != found
    assert fingerprint(DESIRED, live(OURS, entry("kubectl-edit", {"f:spec": {"f:paused": {}}}))) != found


def test_fields_set_manually_are_taken_over_and_those_of_controllers_are_not() -> None:
    controller = entry("kube-controller-manager", {"f:status": {}}, subresource="status")
    autoscaler = entry("some-operator", {"f:metadata": {"f:annotations": {"f:x": {}}}})
    edit = entry("kubectl-edit", {"f:spec": {"f:paused": {}}})
    scale = entry("kubectl", {"f:spec": {"f:replicas": {}}}, subresource="scale")
    result = taken_over(live(OURS, controller, autoscaler, edit, scale))
    assert result is not None
    mine, *others = result
    assert mine["manager"] == "kubernetes-sentinel"
    assert mine["operation"] == "Apply"
    assert mine["fieldsV1"] == {"f:spec": {"f:replicas": {}, "f:paused": {}}}
    assert others == [controller, autoscaler]


def test_nothing_is_taken_over_without_a_manual_change() -> None:
    assert taken_over(live(OURS)) is None
    assert taken_over(live(OURS, entry("kubectl", {"f:status": {}}, subresource="status"))) is None


def test_managers_are_named_once_and_without_status_writers() -> None:
    found = live(OURS, entry("helm", {}), entry("helm", {}), entry("kubelet", {}, subresource="status"))
    assert managers(found) == ["kubernetes-sentinel", "helm"]


def test_a_job_is_finished_when_it_completed_or_failed() -> None:
    def job(condition: str, status: str = "True") -> dict[str, Any]:
        return {"kind": "Job", "status": {"conditions": [{"type": condition, "status": status}]}}

    assert is_finished_job(job("Complete"))
    assert is_finished_job(job("Failed"))
    assert not is_finished_job(job("Complete", "False"))
    assert not is_finished_job(job("Suspended"))
    assert not is_finished_job({"kind": "Job"})
