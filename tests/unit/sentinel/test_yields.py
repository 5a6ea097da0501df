"""What an apply contains of the fields that an object leaves to others."""

from __future__ import annotations

from typing import Any

import pytest

from reside.sentinel.objects.yields import left_to_others

REPLICAS = {"f:spec": {"f:replicas": {}}}
OURS = {"manager": "kubernetes-sentinel", "operation": "Apply", "fieldsV1": REPLICAS}


def deployment(**annotations: str) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": "web", "annotations": annotations}, "spec": {"replicas": 2}}


def live(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"name": "web", "managedFields": list(entries)}}


def other(fields: dict[str, Any], **more: str) -> dict[str, Any]:
    return {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": fields, **more}


YIELDS = deployment(**{"reside.io/yield": "spec.replicas"})


@pytest.mark.parametrize(
    "found",
    [None, live(), live(OURS), live(OURS, other(REPLICAS, subresource="status")), live(other({"f:spec": {"f:a": {}}}))],
    ids=["missing", "without managers", "ours", "a status", "another field"],
)
def test_a_yielded_field_has_its_declared_value_until_another_manager_owns_it(found: dict[str, Any] | None) -> None:
    assert left_to_others(YIELDS, found) == YIELDS


@pytest.mark.parametrize("subresource", ["", "scale"])
def test_a_yielded_field_of_another_manager_is_not_applied(subresource: str) -> None:
    result = left_to_others(YIELDS, live(OURS, other(REPLICAS, subresource=subresource)))
    assert result["spec"] == {}
    assert YIELDS["spec"] == {"replicas": 2}


def test_a_field_that_is_not_yielded_is_applied_whoever_owns_it() -> None:
    assert left_to_others(deployment(), live(other(REPLICAS))) == deployment()
    forbidden = deployment(**{"reside.io/yield": "spec"})
    assert left_to_others(forbidden, live(other(REPLICAS))) == forbidden


def test_of_a_yielded_map_only_the_members_of_others_are_left_out() -> None:
    desired = {"kind": "ConfigMap", "metadata": {"annotations": {"reside.io/yield": "data"}}, "data": {"a": "1"}}
    mine, theirs = other({"f:data": {"f:b": {}}}), other({"f:data": {".": {}, "f:a": {}}})
    assert left_to_others(desired, live(mine)) == desired
    assert left_to_others(desired, live(theirs))["data"] == {}


def test_the_annotation_of_a_restart_is_left_as_it_is_although_it_is_declared() -> None:
    """A declarer may have exported a Deployment that was restarted once."""
    name = "kubectl.kubernetes.io/restartedAt"
    desired = deployment() | {"spec": {"template": {"metadata": {"annotations": {name: "then", "a": "1"}}}}}
    fields = {"f:spec": {"f:template": {"f:metadata": {"f:annotations": {f"f:{name}": {}}}}}}
    result = left_to_others(desired, live(other(fields)))
    assert result["spec"]["template"]["metadata"]["annotations"] == {"a": "1"}
