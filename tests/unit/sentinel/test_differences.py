"""What a repair tells about its changes: fields, values, managers; no secrets."""

from __future__ import annotations

from typing import Any

from reside.sentinel.objects.differences import UNKNOWN, changes, reverted, summary
from reside.sentinel.objects.managed_fields import divided, leaves, shown


def deployment(container: dict[str, Any], *entries: dict[str, Any], **meta: Any) -> dict[str, Any]:
    found = {"name": "web", "resourceVersion": "1", "managedFields": list(entries), **meta}
    spec = {"replicas": 1, "template": {"spec": {"containers": [{"name": "main", **container}]}}}
    return {"kind": "Deployment", "metadata": found, "spec": spec, "status": {"replicas": 9}}


def entry(manager: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "fieldsV1": fields}


def in_container(fields: dict[str, Any]) -> dict[str, Any]:
    return {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"main"}': {".": {}} | fields}}}}}


def test_a_change_names_the_field_the_values_and_the_manager() -> None:
    before = deployment({"image": "b", "args": ["x"]}, entry("helm", in_container({"f:image": {}, "f:args": {}})))
    after = deployment({"image": "a"}, resourceVersion="2")
    assert [str(change) for change in changes(before, after)] == [
        'spec.template.spec.containers[name=main].image: "b" → "a" (helm)',
        'spec.template.spec.containers[name=main].args: ["x"] → absent (helm)',
    ]
    assert {str(culprit) for change in changes(before, after) for culprit in change.culprits()} == {
        "spec.template.spec.containers[name=main].args by helm",
        "spec.template.spec.containers[name=main].image by helm",
    }


def test_the_manager_of_what_was_removed_is_not_known() -> None:
    (change,) = changes(deployment({}, labels={}), deployment({}, labels={"a": "1"}))
    assert (change.before, change.after, change.managers) == (None, '"1"', (UNKNOWN,))


def test_a_port_that_was_added_is_named_by_its_keys() -> None:
    port = {"containerPort": 80, "protocol": "TCP"}
    fields = in_container({"f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}}})
    found = changes(deployment({"ports": [port]}, entry("kubectl-patch", fields)), deployment({}))
    assert {shown(change.path) for change in found} == {
        "spec.template.spec.containers[name=main].ports[containerPort=80,protocol=TCP].containerPort",
        "spec.template.spec.containers[name=main].ports[containerPort=80,protocol=TCP].protocol",
    }
    assert found[0].managers == ("kubectl-patch",)


def test_values_of_secrets_and_of_environment_variables_are_masked() -> None:
    def secret(value: str) -> dict[str, Any]:
        meta = {"name": "s", "annotations": {"note": value}}
        return {"kind": "Secret", "metadata": meta, "data": {"password": value}}

    old, new = ({"env": [{"name": "PASSWORD", "value": value}]} for value in ("hunter2", "hunter3"))
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "hunter4"}
    found = [
        *changes(secret("hunter2"), secret("hunter3")),
        *changes(deployment(old, annotations=applied), deployment(new)),
        *changes(deployment(old), deployment({})),
    ]
    text = summary(found)
    assert len(found) == 6
    assert "hunter" not in text
    assert "data.password: *** → *** (an unknown manager)" in text or "data.password: *** → ***" in text


def test_a_summary_is_one_line_of_limited_length() -> None:
    before = {"kind": "ConfigMap", "data": {f"k{number}\n": "x" * 999 for number in range(50)}}
    text = summary(changes(before, {"kind": "ConfigMap", "data": {}}))
    assert "\n" not in text
    assert text.endswith("; and 42 more")
    assert len(text) < 1600


def test_a_tree_is_divided_without_loss() -> None:
    fields = {"f:a": {".": {}, "f:b": {}, "f:c": {"f:d": {}}}, "f:e": {}}
    inside, outside = divided(fields, [("f:a", "f:c"), ("f:x",)])
    assert inside == {"f:a": {".": {}, "f:c": {"f:d": {}}}}
    assert outside == {"f:a": {".": {}, "f:b": {}}, "f:e": {}}
    assert {*leaves(inside), *leaves(outside)} == set(leaves(fields))
    assert divided(fields, [("f:a",), ("f:e",)]) == (fields, {})
    assert divided(fields, []) == ({}, fields)


def test_only_what_a_repair_has_changed_is_told() -> None:
    """Controllers and autoscalers write at the same time, between the state before the repair and its answer."""
    desired = deployment({"image": "a"}, annotations={"reside.io/yield": "spec.replicas"})
    before = deployment({"image": "b", "args": ["x"], "tty": True}, annotations={"revision": "1"})
    after = deployment({"image": "a", "tty": True}, annotations={"revision": "2"})
    after["spec"]["replicas"] = 9
    taken = [in_container({"f:args": {}, "f:tty": {}})]
    found = reverted(changes(before, after), desired, taken)
    assert [shown(change.path) for change in found] == [
        "spec.template.spec.containers[name=main].image",
        "spec.template.spec.containers[name=main].args",
    ]
    assert reverted(changes(before, after), {"kind": "Deployment"}, []) == []
