"""Each rule refuses its violations with a cure, and accepts everything else."""

from __future__ import annotations

import ast
import copy
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reside.model import constants
from reside.model.kinds import BY_KIND
from reside.policy import rules
from reside.policy.rules import Context, check

CONTEXT = Context(namespace="reside")
DIGEST = "registry.reside.internal/demo@sha256:" + "a" * 64
LABELS = {"app.kubernetes.io/managed-by": "kubernetes-sentinel"}


def manifest(kind: str, **members: Any) -> dict[str, Any]:
    """Return an object whose metadata breaks no rule."""
    return {"kind": kind, "metadata": {"name": "demo", "namespace": "reside", "labels": LABELS}, **members}


def with_pod(kind: str, pod: dict[str, Any]) -> dict[str, Any]:
    """Return an object of `kind` around a pod spec."""
    template = {"template": {"spec": pod}}
    specs = {"Pod": pod, "CronJob": {"jobTemplate": {"spec": template}}}
    return manifest(kind, spec=specs.get(kind, template))


def container(**members: Any) -> dict[str, Any]:
    return {"name": "main", "image": DIGEST, **members}


def broken(*objects: dict[str, Any], context: Context = CONTEXT) -> set[str]:
    """Return the names of the rules that the objects break, except for the rule on kinds."""
    return {violation.rule for violation in check(objects, context)} - {"allowed-kinds"}


POD_KINDS = ["Pod", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "CronJob"]


@pytest.mark.parametrize("kind", POD_KINDS)
@pytest.mark.parametrize("member", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize(
    "image",
    ["demo", "demo:v1", "demo@sha256:short", "demo@sha512:" + "a" * 64, DIGEST + "a", DIGEST.upper(), "", None],
)
def test_image_without_digest_is_refused_everywhere(kind: str, member: str, image: str | None) -> None:
    assert broken(with_pod(kind, {member: [container(image=image)]})) == {"images-by-digest"}


@pytest.mark.parametrize("kind", POD_KINDS)
def test_image_by_digest_passes(kind: str) -> None:
    assert broken(with_pod(kind, {"containers": [container()], "initContainers": [container()]})) == set()


@pytest.mark.parametrize("kind", POD_KINDS)
@pytest.mark.parametrize(
    ("pod", "rule"),
    [
        ({"hostNetwork": True}, "no-host-access"),
        ({"hostPID": True}, "no-host-access"),
        ({"hostIPC": True}, "no-host-access"),
        ({"volumes": [{"name": "etc", "hostPath": {"path": "/etc"}}]}, "no-host-access"),
        ({"containers": [container(ports=[{"containerPort": 80, "hostPort": 80}])]}, "no-host-access"),
        ({"containers": [container(securityContext={"privileged": True})]}, "no-privileges"),
        ({"initContainers": [container(securityContext={"privileged": True})]}, "no-privileges"),
        ({"containers": [container(securityContext={"capabilities": {"add": ["NET_ADMIN"]}})]}, "no-privileges"),
        ({"containers": [container(securityContext={"procMount": "Unmasked"})]}, "no-privileges"),
    ],
)
def test_access_to_the_node_is_refused(kind: str, pod: dict[str, Any], rule: str) -> None:
    assert broken(with_pod(kind, pod)) == {rule}


def test_harmless_pod_settings_pass() -> None:
    pod = {
        "hostNetwork": False,
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        "containers": [
            container(
                securityContext={"privileged": False, "capabilities": {"drop": ["ALL"]}},
                ports=[{"containerPort": 8080}],
            )
        ],
    }
    assert broken(with_pod("Deployment", pod)) == set()


@pytest.mark.parametrize("labels", [{}, None, {"app.kubernetes.io/managed-by": "Helm"}])
def test_managed_by_label_is_required(labels: dict[str, str] | None) -> None:
    found = check([{"kind": "ConfigMap", "metadata": {"name": "demo", "labels": labels}}], CONTEXT)
    assert [(v.rule, v.object) for v in found] == [("managed-by-label", "ConfigMap/demo")]
    assert "app.kubernetes.io/managed-by: kubernetes-sentinel" in found[0].message


def test_foreign_namespace_is_refused_and_an_absent_one_passes() -> None:
    foreign = manifest("ConfigMap")
    foreign["metadata"] = {**foreign["metadata"], "namespace": "kube-system"}
    assert broken(foreign) == {"namespace-confinement"}
    assert broken(foreign, context=Context(namespace=None)) == set()
    del foreign["metadata"]["namespace"]
    assert broken(foreign) == set()


@pytest.mark.parametrize("kind", ["Namespace", "ClusterRole", "Pod", "CustomResourceDefinition", "DaemonSet", None])
def test_other_kinds_are_refused(kind: str | None) -> None:
    assert "allowed-kinds" in {v.rule for v in check([{**manifest("x"), "kind": kind}], CONTEXT)}


def test_allowed_kinds_and_label_are_the_models() -> None:
    assert set(BY_KIND) == rules.ALLOWED_KINDS
    assert rules.MANAGED_BY_LABEL == constants.MANAGED_BY_LABEL
    assert CONTEXT.manager == constants.FIELD_MANAGER


@pytest.mark.parametrize(
    "rule",
    [
        {"apiGroups": ["*"], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["*"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods/*"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["bind"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["impersonate"]},
    ],
)
def test_wide_roles_are_refused(rule: dict[str, Any]) -> None:
    assert broken(manifest("Role", rules=[rule])) == {"no-rbac-wildcards"}


def test_narrow_role_passes() -> None:
    assert (
        broken(manifest("Role", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}])) == set()
    )


ROLE = {"kind": "Role", "name": "demo"}
ACCOUNT = {"kind": "ServiceAccount", "name": "demo", "namespace": "reside"}


def test_role_bindings_stay_in_the_namespace() -> None:
    assert broken(manifest("RoleBinding", roleRef=ROLE, subjects=[ACCOUNT])) == set()
    for role, subject in (
        ({"kind": "ClusterRole", "name": "admin"}, ACCOUNT),
        (ROLE, {"kind": "Group", "name": "system:authenticated"}),
        (ROLE, {**ACCOUNT, "namespace": "default"}),
    ):
        assert broken(manifest("RoleBinding", roleRef=role, subjects=[subject])) == {"local-role-bindings"}


def test_names_of_the_rules_are_frozen() -> None:
    assert list(rules.RULES) == [
        "allowed-kinds",
        "namespace-confinement",
        "managed-by-label",
        "images-by-digest",
        "no-privileges",
        "no-host-access",
        "no-rbac-wildcards",
        "local-role-bindings",
        "volume-types",
        "no-scheduling-privileges",
        "internal-services",
        "own-references",
        "own-roles",
        "narrow-roles",
        "no-secret-values",
        "reserved-names",
        "engine-annotations",
        "own-ingress-paths",
        "yielded-fields",
        "resource-requests",
        "read-only-root",
        "run-as-non-root",
        "seccomp-profile",
        "network-policies",
    ]


def test_messages_never_contain_secret_values() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s", "namespace": "x"}, "stringData": {"key": "hunter2"}}
    pod = {"hostPID": True, "containers": [container(image="x", env=[{"name": "A", "value": "hunter2"}])]}
    assert "hunter2" not in " ".join(map(str, check([secret, with_pod("Deployment", pod)], CONTEXT)))


def test_only_the_standard_library_is_imported() -> None:
    for path in Path(rules.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        others = {name for name in imported if not name.startswith("reside.policy.")}
        assert {name.partition(".")[0] for name in others} <= set(sys.stdlib_module_names)


MEMBERS = ["metadata", "spec", "template", "containers", "ports", "securityContext", "rules", "labels", "verbs", "add"]
MEMBERS += ["volumes", "secret", "env", "valueFrom", "secretKeyRef", "http", "paths", "tls", "annotations", "resources"]
MEMBERS += ["selector", "podSelector", "matchLabels", "tolerations", "key", "type", "data", "volumeClaimTemplates"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MEMBERS), inner),
    max_leaves=20,
)


@given(
    kind=st.sampled_from([*POD_KINDS, *sorted(rules.ALLOWED_KINDS), None, 1, ["Job"], {}]),
    members=st.dictionaries(st.sampled_from(["metadata", "spec", "rules", "type", "data", "roleRef"]), JSON),
)
def test_objects_of_any_shape_are_checked_without_an_exception(kind: Any, members: dict[str, Any]) -> None:
    subject = {"kind": kind, **members}
    before = copy.deepcopy(subject)
    for context in (CONTEXT, Context("reside", stack="mine"), Context("reside", stack="platform", trusted=True)):
        check([subject], context)
    assert subject == before
