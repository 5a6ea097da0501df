"""Kubernetes' scheduler and two nodes: an update of the Sentinel gets the node of its volume, until that node dies."""

from __future__ import annotations

import json
import subprocess
import uuid
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually_sync
from support.sentinel import kubectl, new_namespace
from unit.alpha.entities import CLUSTER, OWNER, replica

from reside.alpha.stacks.render import render
from reside.local.toolchain import Toolchain
from reside.model import constants
from reside.model.stacks import object_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from reside.local import ClusterInfo

SCHEDULER = f"of-two-nodes-{uuid.uuid4().hex[:6]}"
"""Only pods that name it are scheduled: other tests have pods in the same Kubernetes."""
LEASES = "kube-node-lease"
READY = {"type": "Ready", "status": "True", "reason": "Test", "message": "there is no kubelet"}
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "20"}


@pytest.fixture
def nodes(cluster: ClusterInfo, tmp_path: Path) -> Iterator[list[str]]:
    """Yield the names of two nodes without a kubelet, with a scheduler."""
    names = [f"{SCHEDULER}-{number}" for number in range(2)]
    with scheduler(cluster, tmp_path):
        for name in names:
            labels = {"kubernetes.io/hostname": name}
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
            kubectl(cluster, "create", "-f", "-", stdin=json.dumps(node))
            kubectl(cluster, "patch", "node", name, "--type=merge", "-p", '{"spec": {"taints": []}}')
            status = {"status": {"capacity": ROOM, "allocatable": ROOM, "conditions": [READY]}}
            kubectl(cluster, "patch", "node", name, "--subresource=status", "--type=merge", "-p", json.dumps(status))
        yield names
        kubectl(cluster, "delete", "node", *names)
        kubectl(cluster, "-n", LEASES, "delete", "lease", "--ignore-not-found", *names)


@contextmanager
def scheduler(cluster: ClusterInfo, folder: Path) -> Iterator[None]:
    """Run a scheduler for the pods that name it."""
    settings = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(cluster.kubeconfig)},
        "profiles": [{"schedulerName": SCHEDULER}],
    }
    (folder / "scheduler.json").write_text(json.dumps(settings))
    command = [Toolchain.default().find("kube-scheduler"), "--config", folder / "scheduler.json", "--secure-port=0"]
    with (folder / "scheduler.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def place(cluster: ClusterInfo, namespace: str, name: str, labels: dict[str, str], spec: dict[str, Any]) -> str:
    """Create a pod, and return the node that it gets."""
    create(cluster, namespace, name, labels, spec)
    return node_of(cluster, namespace, name)


def create(cluster: ClusterInfo, namespace: str, name: str, labels: dict[str, str], spec: dict[str, Any]) -> None:
    """Create a pod that takes a third of a node."""
    resources = {"requests": {"cpu": "1300m"}}
    # The nodes have no kubelet that reports them as ready
    tolerations = [
        {"key": f"node.kubernetes.io/{state}", "operator": "Exists"} for state in ("not-ready", "unreachable")
    ]
    own = {"schedulerName": SCHEDULER, "tolerations": tolerations}
    own |= {"containers": [{"name": "c", "image": "none", "resources": resources}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec | own}
    kubectl(cluster, "-n", namespace, "create", "-f", "-", stdin=json.dumps(pod))


def node_of(cluster: ClusterInfo, namespace: str, name: str) -> str:
    """Wait until a pod is scheduled, and return its node."""
    path = "jsonpath={.spec.nodeName}"
    return eventually_sync(
        f"the node of {name}",
        lambda: kubectl(cluster, "-n", namespace, "get", "pod", name, "-o", path),
        bool,
        within=120,
    )


def give_signs_of_life(cluster: ClusterInfo, nodes: list[str]) -> None:
    """Renew the nodes' leases like their kubelets: any change of a node's taints makes the scheduler look again."""
    spec = {"leaseDurationSeconds": 40, "renewTime": datetime.now(UTC).isoformat(timespec="microseconds")}
    items = [
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
        for name in nodes
    ]
    leases = {"apiVersion": "v1", "kind": "List", "items": items}
    kubectl(cluster, "-n", LEASES, "apply", "-f", "-", stdin=json.dumps(leases))


def sentinel_pods() -> list[tuple[dict[str, str], dict[str, Any]]]:
    """Return labels and affinity of the pods of an old and a new version."""
    sentinel = replica("running-outdated", "starting", name="kubernetes-sentinel", identity=constants.SENTINEL_IDENTITY)
    stack = render(sentinel, CLUSTER, owner=OWNER, serving=())
    templates = [obj["spec"]["template"] for obj in stack.objects if object_key(obj).startswith("Deployment/")]
    account = {"serviceAccountName": "default-of-test"}
    return [(each["metadata"]["labels"], {"affinity": each["spec"]["affinity"]} | account) for each in templates]


@pytest.fixture
def namespace(cluster: ClusterInfo) -> str:
    """Return a namespace with a service account."""
    name = new_namespace(cluster)
    kubectl(cluster, "-n", name, "create", "serviceaccount", "default-of-test")
    return name


def delete(cluster: ClusterInfo, namespace: str, *names: str) -> None:
    """Delete pods at once; all of them without a name."""
    kubectl(cluster, "-n", namespace, "delete", "pod", *(names or ("--all",)), "--grace-period=0", "--force")


def test_a_new_version_gets_the_node_of_the_old_one_although_the_other_is_empty(
    cluster: ClusterInfo, nodes: list[str], namespace: str
) -> None:
    (old, new), account = sentinel_pods(), {"serviceAccountName": "default-of-test"}
    first = place(cluster, namespace, "old", *old)
    assert first in nodes
    assert place(cluster, namespace, "other", {"app": "other"}, account) != first, "the scheduler spreads pods"
    assert place(cluster, namespace, "new", *new) == first
    delete(cluster, namespace)


def test_the_sentinel_gets_another_node_as_soon_as_its_pod_on_a_dead_node_is_deleted(
    cluster: ClusterInfo, nodes: list[str], namespace: str
) -> None:
    """Without the anti-affinity of `reside.alpha.stacks.system`, the scheduler looks again after 5 minutes."""
    pod, _ = sentinel_pods()
    dead = place(cluster, namespace, "before", *pod)
    kubectl(cluster, "taint", "node", dead, "node.kubernetes.io/out-of-service=:NoSchedule")
    create(cluster, namespace, "after", *pod)
    reason = ("-n", namespace, "get", "pod", "after", "-o", "jsonpath={.status.conditions[0].reason}")
    eventually_sync("a refusal", lambda: kubectl(cluster, *reason), "Unschedulable".__eq__)
    delete(cluster, namespace, "before")

    def node() -> str:
        give_signs_of_life(cluster, nodes)
        return kubectl(cluster, "-n", namespace, "get", "pod", "after", "-o", "jsonpath={.spec.nodeName}")

    assert {dead, eventually_sync("the node of after", node, within=120)} == set(nodes)
    delete(cluster, namespace)
