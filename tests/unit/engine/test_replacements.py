"""What the command line would replace is found out before it runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reside.sentinel.engine.replacements import refused
from reside.sentinel.engine.resources import ProviderSettings, declare_stack

API = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "RoleBinding": "rbac.authorization.k8s.io/v1",
}


def obj(kind: str, annotations: dict[str, str] | None = None, **members: Any) -> dict[str, Any]:
    metadata = {"name": "a", "annotations": annotations or {}}
    return {"apiVersion": API.get(kind, "v1"), "kind": kind, "metadata": metadata, **members}


def found(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, tuple[str, ...]] | None:
    """Return what is refused if an object of a state becomes another one."""

    def resources(subject: dict[str, Any]) -> Any:
        return declare_stack("demo", [subject], ProviderSettings("4.25.0", "ns")).resources

    (before,) = [each for each in resources(old) if each.name == "a"]
    urn = f"urn:pulumi:demo::reside::pulumi:pulumi:Stack${before.type}::a"
    inputs = dict(before.inputs)
    if "data" in before.secrets:
        inputs["data"] = {"4dabf18193072939515e22adb298388d": "x", "plaintext": json.dumps(inputs["data"])}
    return refused({"deployment": {"resources": [{"urn": urn, "inputs": inputs}]}}, resources(new))


@pytest.mark.parametrize(
    ("kind", "path", "old", "new"),
    [
        ("PersistentVolumeClaim", "spec.storageClassName", {"spec": {}}, {"spec": {"storageClassName": "standard"}}),
        ("StatefulSet", "spec.serviceName", {"spec": {"serviceName": "a"}}, {"spec": {"serviceName": "b"}}),
        ("StatefulSet", "spec.volumeClaimTemplates", {"spec": {}}, {"spec": {"volumeClaimTemplates": [{"a": 1}]}}),
        ("Deployment", "spec.selector", {"spec": {"selector": {"a": "1"}}}, {"spec": {"selector": {"a": "2"}}}),
        ("Service", "spec.clusterIP", {"spec": {}}, {"spec": {"clusterIP": "None"}}),
        ("RoleBinding", "roleRef", {"roleRef": {"name": "a"}}, {"roleRef": {"name": "b"}}),
        ("Secret", "type", {"type": "Opaque"}, {"type": "x"}),
        ("Secret", "data", {"immutable": True, "data": {"a": "1"}}, {"immutable": True, "data": {"a": "2"}}),
        ("ConfigMap", "data", {"immutable": True, "data": {"a": "1"}}, {"immutable": True, "data": {"a": "2"}}),
    ],
)
def test_an_object_that_would_be_replaced_is_refused_with_its_path(
    kind: str, path: str, old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert found(obj(kind, **old), obj(kind, **new)) == (f"{kind}/a", (path,))
    assert found(obj(kind, **old), obj(kind, **old)) is None
    assert found(obj(kind, **old), obj(kind, {"reside.io/replace": "true"}, **new)) is None
    assert found(obj(kind, **old), obj(kind, {"reside.io/replace": "true", "reside.io/keep": "true"}, **new))


def test_other_changes_and_jobs_pass() -> None:
    assert found(obj("Job", spec={"template": 1}), obj("Job", spec={"template": 2})) is None
    assert found(obj("Deployment", spec={"replicas": 1}), obj("Deployment", spec={"replicas": 2})) is None
    assert found(obj("Secret", data={"a": "1"}), obj("Secret", data={"a": "2"})) is None
    assert found(obj("Secret", immutable=True, data={"a": "1"}), obj("Secret", immutable=True, data={"a": "1"})) is None


def test_a_new_object_and_an_empty_state_pass() -> None:
    (*_, resource) = declare_stack("demo", [obj("Secret")], ProviderSettings("4.25.0", "ns")).resources
    for state in ({}, {"deployment": None}, {"deployment": {"resources": []}}):
        assert refused(state, [resource]) is None
