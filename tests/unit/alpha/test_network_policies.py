"""NetworkPolicies let in whom a replica needs, and nobody else: judged as Kubernetes judges them, policies add up."""

from __future__ import annotations

from typing import Any

import pytest
from unit.alpha.entities import CLUSTER, GREETING, OWNER, replica

from reside.alpha.stacks.render import render
from reside.model import constants
from reside.model.entities import ReplicaChoice, Requirement
from reside.model.kinds import BY_KIND
from reside.policy import rules
from reside.seed import platform, settings

LIMITED = CLUSTER.model_copy(update={"network_policies": "ingress"})
FULL = CLUSTER.model_copy(update={"network_policies": "full"})
IMAGES = {
    name: f"registry.reside.internal/reside/{name}@sha256:{'0' * 64}"
    for name in ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
}
SEED = {constants.JOB_LABEL: "seed"}
STRANGER = {"app": "stranger"}


def pod(name: str) -> dict[str, str]:
    """Return labels of a pod: those of Jazz and etcd, or those of a replica."""
    return {"app.kubernetes.io/name": name} if name in ("jazz", "etcd") else {constants.REPLICA_LABEL: name}


def policies(cluster: Any = LIMITED) -> list[dict[str, Any]]:
    """Return the NetworkPolicies of Jazz, etcd, Alpha, the Sentinel, a greeter, and a caller that requires it."""
    required = Requirement(contract=GREETING, replicas=(ReplicaChoice(id=3, name="greeter", account="co_zGreeter"),))
    caller = replica("running", name="caller", id=4)
    version = caller.versions[0].model_copy(update={"requirements": {"greeting": required}, "implementations": {}})
    subjects = [
        replica("running"),
        caller.model_copy(update={"versions": (version,)}),
        replica("running", name="alpha", identity=constants.ALPHA_IDENTITY),
        replica("running", name="kubernetes-sentinel", identity=constants.SENTINEL_IDENTITY),
    ]
    stacks = [render(subject, cluster, owner=OWNER, serving={GREETING}) for subject in subjects]
    for stack in stacks:
        context = rules.Context(cluster.namespace, stack=stack.name, trusted=True)
        assert rules.review(stack.objects, context) == [], "the policy is obeyed without exception"
    data = {"namespace": cluster.namespace, "images": IMAGES, "network_policies": cluster.network_policies}
    ours = platform.platform_stack(settings.parse(data, "test"), "co_zEngine")
    assert rules.review(ours, rules.Context(cluster.namespace, stack="platform", trusted=True)) == []
    objects = [obj for stack in stacks for obj in stack.objects] + ours
    found = [obj for obj in objects if obj["kind"] == "NetworkPolicy"]
    assert {obj["apiVersion"] for obj in found} == {BY_KIND["NetworkPolicy"].api_version}
    return found


def selects(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Return whether a label selector selects."""
    values = {"In": lambda found, each: found in each, "NotIn": lambda found, each: found not in each}
    exact = all(labels.get(name) == value for name, value in selector.get("matchLabels", {}).items())
    return exact and all(
        labels.get(each["key"]) is not None
        if each["operator"] == "Exists"
        else values[each["operator"]](labels.get(each["key"]), each["values"])
        for each in selector.get("matchExpressions", ())
    )


def allowed(
    found: list[dict[str, Any]], source: dict[str, str], target: dict[str, str], port: int, namespace: str = "reside"
) -> bool:
    """Return whether a pod of a namespace reaches a port of a pod of the cluster."""

    def matches(peer: dict[str, Any], labels: dict[str, str], where: str) -> bool:
        if "namespaceSelector" in peer:
            return selects(peer["namespaceSelector"], {"kubernetes.io/metadata.name": where})
        return where == "reside" and selects(peer["podSelector"], labels)

    def passes(kind: str, subject: dict[str, str], member: str, other: dict[str, str], where: str) -> bool:
        chosen = [
            each["spec"]
            for each in found
            if selects(each["spec"]["podSelector"], subject) and kind in each["spec"]["policyTypes"]
        ]
        through = [rule for spec in chosen for rule in spec.get(kind.lower(), ())]
        return not chosen or any(
            any(each["port"] == port and each["protocol"] == "TCP" for each in rule["ports"])
            and (member not in rule or any(matches(peer, other, where) for peer in rule[member]))
            for rule in through
        )

    leaves = namespace != "reside" or passes("Egress", source, "to", target, "reside")
    return leaves and passes("Ingress", target, "from", source, namespace)


@pytest.mark.parametrize("cluster", [LIMITED, FULL])
@pytest.mark.parametrize(
    ("source", "target", "port", "reaches"),
    [
        (pod("caller"), pod("jazz"), 4200, True),
        (pod("caller"), pod("etcd"), 2379, True),
        (pod("kubernetes-sentinel"), pod("jazz"), 4200, True),
        (SEED, pod("jazz"), 4200, True),
        (SEED, pod("alpha"), 8080, True),
        (STRANGER, pod("jazz"), 4200, False),
        (STRANGER, pod("etcd"), 2379, False),
        (pod("caller"), pod("etcd"), 2380, False),
        (pod("caller"), pod("greeter"), 8080, True),
        (pod("caller"), pod("greeter"), 22, False),
        (pod("greeter"), pod("caller"), 8080, False),
        (pod("other"), pod("greeter"), 8080, False),
        (STRANGER, pod("greeter"), 8080, False),
        (pod("greeter"), pod("alpha"), 8080, True),
        (STRANGER, pod("alpha"), 8080, False),
        (pod("caller"), pod("kubernetes-sentinel"), 8080, False),
    ],
)
def test_pods_reach_what_they_need_and_nothing_else(
    cluster: Any, source: dict[str, str], target: dict[str, str], port: int, reaches: bool
) -> None:
    assert allowed(policies(cluster), source, target, port) is reaches


@pytest.mark.parametrize(
    ("chosen", "reaching"),
    [({}, {"ingress-nginx", "monitoring"}), ({"ingress_namespace": "ingress-nginx"}, {"ingress-nginx"})],
)
def test_the_ingress_controller_reaches_what_has_an_ingress(chosen: dict[str, str], reaching: set[str]) -> None:
    domain = {"domain": "example.org", "cluster_issuer": "letsencrypt"}
    found = policies(LIMITED.model_copy(update=domain | chosen))
    for name in ("ingress-nginx", "monitoring", "reside"):
        assert allowed(found, STRANGER, pod("greeter"), 8080, namespace=name) is (name in reaching)
        assert not allowed(found, STRANGER, pod("caller"), 8080, namespace=name)
        assert not allowed(found, STRANGER, pod("jazz"), 4200, namespace=name)
    assert not allowed(policies(), STRANGER, pod("greeter"), 8080, namespace="ingress-nginx")


def test_only_full_policies_limit_what_a_replica_reaches_and_never_the_parts_of_reside() -> None:
    for cluster, limited in ((LIMITED, False), (FULL, True)):
        found = policies(cluster)
        assert allowed(found, pod("caller"), STRANGER, 443) is not limited
        assert allowed(found, pod("caller"), STRANGER, 53)
        for name in ("alpha", "kubernetes-sentinel"):
            assert allowed(found, pod(name), STRANGER, 443)
    traces = FULL.model_copy(update={"traces_endpoint": "http://collector.observability:4318"})
    assert allowed(policies(traces), pod("caller"), STRANGER, 4318)
    traces = FULL.model_copy(update={"traces_endpoint": "https://collector.example.org"})
    assert allowed(policies(traces), pod("caller"), STRANGER, 443)


def test_a_cluster_without_network_policies_has_none_and_names_never_collide() -> None:
    assert [
        obj for obj in render(replica("running"), CLUSTER, owner=OWNER).objects if obj["kind"] == "NetworkPolicy"
    ] == []
    names = [obj["metadata"]["name"] for obj in policies()]
    assert sorted(names) == ["alpha", "caller", "caller.calls", "etcd", "greeter", "jazz", "kubernetes-sentinel"]
