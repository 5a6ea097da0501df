"""The declaration that the program sends, and which objects adoption refuses."""

from __future__ import annotations

import base64
import copy
import subprocess
import sys
from typing import Any

import pytest

from reside.model.applied import ANNOTATIONS, as_applied, token
from reside.sentinel.engine import ForeignObject, StackSpec, check_adoption
from reside.sentinel.engine.adoption import foreign, manager_of
from reside.sentinel.engine.resources import ProviderSettings, declare_stack

LABELS = {"app.kubernetes.io/managed-by": "kubernetes-sentinel"}
DESIRED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": LABELS}}


def test_annotations_are_frozen() -> None:
    """Clusters and engine states contain them."""
    assert ANNOTATIONS == {
        "pulumi.com/patchFieldManager": "kubernetes-sentinel",
        "pulumi.com/skipAwait": "true",
        "pulumi.com/deletionPropagationPolicy": "background",
    }


@pytest.mark.parametrize(
    ("version", "kind", "expected"),
    [
        ("v1", "Secret", "kubernetes:core/v1:Secret"),
        ("apps/v1", "Deployment", "kubernetes:apps/v1:Deployment"),
        ("rbac.authorization.k8s.io/v1", "Role", "kubernetes:rbac.authorization.k8s.io/v1:Role"),
    ],
)
def test_tokens(version: str, kind: str, expected: str) -> None:
    assert token({"apiVersion": version, "kind": kind}) == expected


def test_namespace_and_annotations_are_added_to_a_copy() -> None:
    desired = {**DESIRED, "metadata": {**DESIRED["metadata"], "annotations": {"mine": "1"}}}  # type: ignore[dict-item]
    before = copy.deepcopy(desired)
    sent = as_applied(desired, "reside")
    assert sent["metadata"]["namespace"] == "reside"
    assert sent["metadata"]["annotations"] == {"mine": "1", **ANNOTATIONS}
    assert sent["metadata"]["labels"] == LABELS
    assert desired == before
    assert as_applied(sent, "reside") == sent


def test_string_data_becomes_data() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "eA=="}}
    sent = as_applied({**secret, "stringData": {"b": "y"}}, "reside")
    assert sent["data"] == {"a": "eA==", "b": base64.b64encode(b"y").decode()}
    assert "stringData" not in sent


def test_a_specs_repr_shows_no_objects() -> None:
    assert "hunter2" not in repr(StackSpec("demo", ({"kind": "Secret", "stringData": {"k": "hunter2"}},)))


def test_the_sentinel_does_not_import_pulumi_unless_the_command_line_runs_a_program() -> None:
    code = (
        "import sys, reside.sentinel.__main__, reside.sentinel.engine.runner_factory;"
        "sys.exit(any(name in sys.modules for name in ('pulumi', 'grpc')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def live(labels: dict[str, str] | None = None, **managers: str) -> dict[str, Any]:
    fields = [{"manager": manager, "time": time} for manager, time in managers.items()]
    return {"metadata": {"name": "a", "labels": labels, "managedFields": fields}}


def is_own(stack: str) -> bool:
    return stack == "demo"


def test_missing_and_own_objects_may_be_adopted() -> None:
    assert foreign(DESIRED, None, is_own) is None
    assert foreign(DESIRED, live(LABELS, kubectl="2026-01-01"), is_own) is None


@pytest.mark.parametrize(("stack", "adopted"), [("demo", True), ("other", False), ("", False)])
def test_an_object_with_the_label_of_a_stack_is_adopted_by_stacks_of_its_owner(stack: str, adopted: bool) -> None:
    refused = foreign(DESIRED, live({**LABELS, "reside.io/stack": stack}), is_own)
    assert (refused is None) == adopted
    if refused is not None:
        assert f"belongs to the stack {stack}" in str(refused)


@pytest.mark.parametrize("labels", [None, {}, {"app.kubernetes.io/managed-by": "Helm"}])
def test_a_live_object_without_our_label_is_refused(labels: dict[str, str] | None) -> None:
    assert foreign(DESIRED, live(labels, helm="2026-01-01"), is_own) == ForeignObject("ConfigMap/a", "helm")


def test_the_manager_is_the_last_writer_of_anything_but_the_status() -> None:
    found = live(None, first="2026-01-01T00:00:00Z", last="2026-02-01T00:00:00Z")
    status = {"manager": "controller", "time": "2026-03-01T00:00:00Z", "subresource": "status"}
    found["metadata"]["managedFields"].append(status)
    assert manager_of(found) == "last"
    assert manager_of({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}}) == "Helm"
    assert manager_of({}) == "an unknown manager"


@pytest.mark.anyio
async def test_check_adoption_looks_at_every_object_and_keeps_their_order() -> None:
    desired = [{**DESIRED, "metadata": {"name": name}} for name in ("a", "b", "c")]

    async def get_live(desired: dict[str, Any]) -> dict[str, Any] | None:
        return None if desired["metadata"]["name"] == "b" else live(None, somebody="2026-01-01")

    found = await check_adoption(desired, get_live, is_own)
    assert [refusal.object for refusal in found.refused] == ["ConfigMap/a", "ConfigMap/c"]


@pytest.mark.anyio
async def test_the_create_of_an_object_repeats_what_was_found() -> None:
    async def get_live(desired: dict[str, Any]) -> dict[str, Any] | None:
        if desired["metadata"]["name"] == "new":
            return None
        return {"metadata": {"name": "old", "uid": "u1", "labels": LABELS}}

    desired = [{**DESIRED, "metadata": {"name": name}} for name in ("old", "new")]
    found = await check_adoption(desired, get_live, is_own)
    assert found.refused == ()
    assert found.expected == {"ConfigMap/old": {"uid": "u1"}, "ConfigMap/new": {"resourceVersion": "1"}}
    declared = declare_stack("demo", desired, ProviderSettings("4.25.0", "ns"), found.expected).resources
    assert [each.creating for each in declared[2:]] == [
        {"metadata": {"uid": "u1"}},
        {"metadata": {"resourceVersion": "1"}},
    ]
    assert all("uid" not in each.inputs["metadata"] for each in declared[2:])


def test_the_declaration_names_stack_provider_and_what_workloads_come_after() -> None:
    manifests = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": None},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}},
        DESIRED,
    ]
    found = declare_stack("demo", manifests, ProviderSettings("4.25.0", "ns")).resources
    assert [(r.type, r.name, r.parent, r.provider, r.custom) for r in found] == [
        ("pulumi:pulumi:Stack", "reside-demo", -1, -1, False),
        ("pulumi:providers:kubernetes", "kubernetes", 0, -1, True),
        ("kubernetes:core/v1:Secret", "s", 0, 1, True),
        ("kubernetes:core/v1:ConfigMap", "a", 0, 1, True),
        ("kubernetes:apps/v1:Deployment", "web", 0, 1, True),
    ]
    assert found[2].secrets == ("data",)
    assert found[4].after == (2, 3)
    assert "spec" not in found[4].inputs
    assert {r.version for r in found[1:]} == {"4.25.0"}
