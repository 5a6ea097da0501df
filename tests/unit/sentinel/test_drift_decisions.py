"""Pure decisions about one object from its desired and its live state."""

from typing import Any

from reside.sentinel.guard.drift import ObjectState, additions, decide, fingerprint, managers, taken_over
from reside.sentinel.objects.identity import is_finished_job
from reside.sentinel.objects.managed_fields import union

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


def annotated(**annotations: str) -> dict[str, Any]:
    names = {f"reside.io/{name}": value for name, value in annotations.items()}
    return {**DESIRED, "metadata": {**DESIRED["metadata"], "annotations": names}}


CONTROLLER = entry("kube-controller-manager", {"f:status": {}}, subresource="status")
OPERATOR = entry("some-operator", {"f:metadata": {"f:annotations": {"f:x": {}}, "f:finalizers": {'v:"a/b"': {}}}})
EDIT = entry("kubectl-edit", {"f:spec": {"f:paused": {}}})
SCALE = entry("kubectl", {"f:spec": {"f:replicas": {}}}, subresource="scale")
AUTOSCALER = entry("kube-controller-manager", {"f:spec": {"f:replicas": {}}}, subresource="scale")
_ANNOTATION = {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/restartedAt": {}}}
RESTART = entry("kubectl-rollout", {"f:spec": {"f:template": {"f:metadata": _ANNOTATION}}})


def test_fields_set_manually_are_taken_over_and_those_of_programs_are_not() -> None:
    result = taken_over(DESIRED, live(OURS, CONTROLLER, OPERATOR, AUTOSCALER, EDIT, SCALE))
    assert result is not None
    mine, *others = result
    assert mine["manager"] == "kubernetes-sentinel"
    assert mine["operation"] == "Apply"
    assert mine["fieldsV1"] == {"f:spec": {"f:replicas": {}, "f:paused": {}}}
    assert others == [CONTROLLER, OPERATOR, AUTOSCALER]


def test_what_programs_added_to_a_strict_object_is_taken_over_without_finalizers() -> None:
    """Those of Kubernetes stay: it would write them again. A finalizer is needed when the object is deleted."""
    found = live(OURS, CONTROLLER, OPERATOR, AUTOSCALER)
    assert taken_over(annotated(strict="false"), found) is None
    result = taken_over(annotated(strict="true"), found)
    assert result is not None
    mine, *others = result
    assert mine["fieldsV1"] == {"f:spec": {"f:replicas": {}}, "f:metadata": {"f:annotations": {"f:x": {}}}}
    stays = OPERATOR | {"fieldsV1": {"f:metadata": {"f:finalizers": {'v:"a/b"': {}}}}}
    assert others == [CONTROLLER, stays, AUTOSCALER]
    assert taken_over(annotated(strict="true"), live(OURS, stays)) is None


def test_nothing_is_taken_over_without_a_manual_change() -> None:
    assert taken_over(DESIRED, live(OURS)) is None
    assert taken_over(DESIRED, live(OURS, entry("kubectl", {"f:status": {}}, subresource="status"))) is None


def left(*entries: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of what people wrote to yielded fields."""
    fields: dict[str, Any] = {}
    for each in entries:
        fields = union(fields, each["fieldsV1"])
    time = {"fieldsType": "FieldsV1", "time": OURS["time"]}
    return entry("reside-yielded", fields, **time)


YIELDS = annotated(**{"yield": "spec.replicas"})


def test_what_people_wrote_to_a_yielded_field_gets_a_manager_of_its_own() -> None:
    """Pulumi's provider would take it over from kubectl, and remove it."""
    result = taken_over(YIELDS, live(OURS, CONTROLLER, SCALE, EDIT, RESTART))
    assert result is not None
    assert result[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}, "f:paused": {}}}
    assert result[1:] == [left(SCALE, RESTART), CONTROLLER]
    assert taken_over(YIELDS, live(*result)) is None
    assert taken_over(annotated(**{"yield": "spec.replicas", "strict": "true"}), live(*result)) is None
    again = taken_over(YIELDS, live(OURS, left(SCALE), RESTART))
    assert again is not None
    assert again[1:] == [left(SCALE, RESTART)]
    assert additions(YIELDS, live(*result)) == []


def test_what_people_wrote_to_a_field_that_is_no_longer_yielded_is_reverted() -> None:
    result = taken_over(DESIRED, live(OURS, left(SCALE, EDIT, RESTART)))
    assert result is not None
    assert result[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}, "f:paused": {}}}
    assert result[1:] == [left(RESTART)]


def test_a_yielded_field_and_a_restart_are_no_drift() -> None:
    before = live(OURS, spec={"replicas": 1, "template": {"metadata": {"annotations": {}}, "spec": {}}})
    restarted = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}, "spec": {}}
    after = live(OURS, left(SCALE, RESTART), AUTOSCALER, spec={"replicas": 5, "template": restarted})
    assert fingerprint(YIELDS, before) == fingerprint(YIELDS, after)
    assert fingerprint(DESIRED, before) != fingerprint(DESIRED, after)


def test_what_programs_added_is_named_and_what_is_desired_or_yielded_is_not() -> None:
    known = entry("helm", {"f:spec": {"f:replicas": {}, "f:paused": {}}})
    found = live(OURS, CONTROLLER, AUTOSCALER, OPERATOR, EDIT, known)
    assert [str(each) for each in additions(DESIRED, found)] == [
        "metadata.annotations.x by some-operator",
        'metadata.finalizers["a/b"] by some-operator',
        "spec.paused by helm",
    ]
    assert len(additions(annotated(**{"yield": "metadata.annotations.x"}), found)) == 2


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
