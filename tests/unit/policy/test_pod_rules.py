"""What pods should have: requests, a read-only root, no root user, a seccomp profile, a NetworkPolicy."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reside.policy.rules import RULES, Context, check, review

STACK = Context("reside", stack="mine")
LABELS = {"app.kubernetes.io/managed-by": "kubernetes-sentinel"}
SECURE: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "main",
            "image": "registry.reside.internal/demo@sha256:" + "a" * 64,
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            "securityContext": {"readOnlyRootFilesystem": True},
        }
    ],
}


def deployment(pod: dict[str, Any], **labels: str) -> dict[str, Any]:
    """Return a Deployment around a pod spec."""
    template = {"metadata": {"labels": {"app": "web", **labels}}, "spec": pod}
    return {"kind": "Deployment", "metadata": {"name": "web", "labels": LABELS}, "spec": {"template": template}}


def policy(**selector: Any) -> dict[str, Any]:
    """Return a NetworkPolicy."""
    return {"kind": "NetworkPolicy", "metadata": {"name": "web", "labels": LABELS}, "spec": {"podSelector": selector}}


def changed(where: str, **members: Any) -> dict[str, Any]:
    """Return the secure pod with other members of its security context, or of its container."""
    pod = copy.deepcopy(SECURE)
    holder = pod["containers"][0] if where == "container" else pod
    holder["securityContext"] |= members
    return pod


def found(pod: dict[str, Any], *others: dict[str, Any]) -> set[str]:
    """Return the names of the rules that a Deployment with this pod violates."""
    return {each.rule for each in review([deployment(pod), *others], STACK) if each.object == "Deployment/web"}


def test_a_secure_pod_with_a_network_policy_obeys_all_rules() -> None:
    assert found(SECURE, policy(matchLabels={"app": "web"})) == set()


@pytest.mark.parametrize(
    ("pod", "rule"),
    [
        (SECURE | {"containers": [SECURE["containers"][0] | {"resources": {}}]}, "resource-requests"),
        (
            SECURE | {"containers": [SECURE["containers"][0] | {"resources": {"requests": {"cpu": "1"}}}]},
            "resource-requests",
        ),
        (
            SECURE | {"initContainers": [SECURE["containers"][0] | {"name": "first", "resources": {}}]},
            "resource-requests",
        ),
        (changed("container", readOnlyRootFilesystem=False), "read-only-root"),
        (changed("pod", runAsNonRoot=False), "run-as-non-root"),
        (changed("container", runAsNonRoot=False), "run-as-non-root"),
        (changed("container", runAsUser=0), "run-as-non-root"),
        (changed("pod", runAsUser=0), "run-as-non-root"),
        (changed("pod", seccompProfile={"type": "Unconfined"}), "seccomp-profile"),
        (changed("container", seccompProfile={"type": "Unconfined"}), "seccomp-profile"),
        (changed("pod", seccompProfile=None), "seccomp-profile"),
    ],
)
def test_a_pod_that_lacks_one_thing_violates_one_rule(pod: dict[str, Any], rule: str) -> None:
    assert found(pod, policy(matchLabels={"app": "web"})) == {rule}


@pytest.mark.parametrize(
    "pod",
    [
        SECURE | {"containers": [SECURE["containers"][0] | {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]},
        changed("pod", runAsNonRoot=None, seccompProfile=None)
        | {
            "containers": [
                SECURE["containers"][0]
                | {"securityContext": {"readOnlyRootFilesystem": True, **SECURE["securityContext"]}}
            ]
        },
    ],
)
def test_limits_count_as_requests_and_what_a_container_says_counts_before_its_pod(pod: dict[str, Any]) -> None:
    assert found(pod, policy(matchLabels={"app": "web"})) == set()


@pytest.mark.parametrize(
    ("selector", "selects"),
    [
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "x"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}, False),
    ],
)
def test_a_network_policy_counts_if_it_selects_the_pods(selector: dict[str, Any], selects: bool) -> None:
    assert ("network-policies" not in found(SECURE, policy(**selector))) is selects


def test_a_stack_without_network_policies_is_advised_and_not_refused() -> None:
    (advice,) = review([deployment(SECURE)], STACK)
    assert (advice.rule, advice.level) == ("network-policies", "advisory")
    assert str(advice).startswith("Deployment/web should obey network-policies (advisory): every pod")
    assert check([deployment(SECURE)], STACK) == []
    assert review([deployment(SECURE)], Context("reside")) == []


def test_each_rule_says_why_it_exists_and_how_it_is_obeyed() -> None:
    for rule in RULES.values():
        assert rule.reason.endswith(".")
        assert rule.cure
        assert not rule.cure.endswith(".")
