"""The embedded Kubernetes: pods, Services, DNS, volumes; repair after SIGKILL; nothing remains after down."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx2
import pytest
from anyio import to_thread
from e2e.nodes import kill_node
from e2e.probe_image import push_probe
from e2e.whole_cluster import (
    POD_SECONDS,
    Cluster,
    answers,
    ask_by_domain,
    firewall,
    forward_pid,
    ingress_of,
    movable,
    place_of,
    traces,
)
from support.eventually import eventually, eventually_sync

from reside.access.forward import PortForward
from reside.common.processes import identify
from reside.local import cgroups
from reside.local.allocation import layout_of, read_allocation
from reside.local.layout import CLUSTER_ISSUER
from reside.local.node_layout import NodeLayout
from reside.local.processes import marked
from reside.local.toolchain import Toolchain

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield one cluster with one probe for all tests: each begins with `up`, which repairs what the one before did."""
    cluster = Cluster("whole", tmp_path_factory.mktemp("probe"))
    try:
        cluster.up()
        cluster.run_probe("first")
        yield cluster
    finally:
        cluster.local.down(delete_state=True)


def test_every_component_runs(cluster: Cluster) -> None:
    cluster.up()
    assert {status.state for status in cluster.local.status()} == {"running"}


def test_a_pod_is_reached_through_its_service_from_the_machine(cluster: Cluster) -> None:
    cluster.up()
    assert cluster.ask("first", "/name").startswith("first-")


def test_a_pod_reaches_itself_and_the_api_through_services_by_name(cluster: Cluster) -> None:
    info = cluster.up()
    assert cluster.ask("first", "/fetch", url="http://first/name").startswith("first-")
    found = cluster.ask("first", "/lookup", name="kubernetes.default")
    assert found == f"[{info.service_range.rpartition('.')[0]}.1]"


def test_pods_reach_the_registry_under_its_bridge_address(cluster: Cluster) -> None:
    info = cluster.up()
    assert json.loads(cluster.ask("first", "/fetch", url=f"http://{info.registry_bridge}/v2/_catalog")) == {
        "repositories": ["probe"]
    }
    assert cluster.ask("first", "/lookup", name="registry.reside.internal") == f"[{info.bridge_address}]"


def test_logs_and_exec_work(cluster: Cluster) -> None:
    cluster.up()
    assert "CoreDNS" in cluster.kubectl("-n", "kube-system", "logs", "deployment/coredns")
    assert "CoreDNS" in cluster.kubectl("-n", "kube-system", "exec", "deployment/coredns", "--", "/coredns", "-version")


def test_a_volume_claim_is_bound_to_a_folder_that_is_deleted_with_it(cluster: Cluster) -> None:
    cluster.up()
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    manifest = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "short"}, "spec": claim}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
    cluster.kubectl("wait", "pvc/short", "--for=jsonpath={.status.phase}=Bound", "--timeout=30s")
    volumes = cluster.local.state / "volumes"
    assert len(list(volumes.glob("default_short_*"))) == 1
    cluster.kubectl("delete", "pvc", "short")
    eventually_sync("the end of the volume", lambda: list(volumes.glob("default_short_*")), lambda left: not left)


def test_a_second_up_restarts_nothing(cluster: Cluster) -> None:
    cluster.up()
    before = [(status.name, status.pid) for status in cluster.local.status()]
    cluster.up()
    assert [(status.name, status.pid) for status in cluster.local.status()] == before


def test_up_after_kill_of_everything_brings_pods_and_their_data_back(cluster: Cluster) -> None:
    cluster.up()
    httpx2.put(f"{cluster.service('first')}/kept", content=b"precious", trust_env=False).raise_for_status()
    cluster.kill_everything()
    cluster.up()
    cluster.wait_for("first")
    assert cluster.ask("first", "/kept") == "precious"
    assert cluster.ask("first", "/fetch", url="http://first/name").startswith("first-")


@pytest.mark.parametrize("component", ["containerd", "kubelet", "kube-proxy", "kube-apiserver", "registry-bridge"])
def test_up_after_kill_of_one_component_leaves_pods_alone(cluster: Cluster, component: str) -> None:
    cluster.up()
    cluster.wait_for("first")
    before = cluster.ask("first", "/name")
    pid = {status.name: status.pid for status in cluster.local.status()}[component]
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    cluster.up()
    assert cluster.ask("first", "/name") == before
    assert {status.state for status in cluster.local.status()} == {"running"}


def test_up_repairs_a_lost_network(cluster: Cluster) -> None:
    cluster.up()
    allocation = read_allocation(cluster.local.state)
    assert allocation is not None
    before = firewall(allocation.index)
    subprocess.run(["ip", "link", "delete", f"reside{allocation.index}"], check=True)
    subprocess.run(["iptables", "-w", "-D", *before[0].split()[1:]], check=True)
    cluster.up()
    assert firewall(allocation.index) == before
    cluster.wait_for("first")
    assert cluster.ask("first", "/fetch", url="http://first/name").startswith("first-")


def test_servers_listen_on_loopback_and_the_clusters_own_bridge_only(cluster: Cluster) -> None:
    info = cluster.up()
    mine = {process.pid for process in marked(cluster.local.state)}
    listening = subprocess.run(["ss", "-Hltnp"], check=True, capture_output=True, text=True).stdout.splitlines()
    ours = [line.split()[3] for line in listening if any(f"pid={pid}," in line for pid in mine)]
    assert ours
    allowed = ("127.0.0.1:", f"{info.bridge_address}:")
    assert [address for address in ours if not address.startswith(allowed)] == []


def test_a_second_cluster_is_created_and_deleted_without_a_trace(cluster: Cluster, tmp_path: Path) -> None:
    info = cluster.up()
    cluster.wait_for("first")
    before = cluster.ask("first", "/name")
    other = Cluster("beside", tmp_path)
    try:
        assert other.up().service_range != info.service_range
        other.run_probe("second")
        assert other.ask("second", "/fetch", url="http://second/name").startswith("second-")
        assert cluster.ask("first", "/name") == before
        with pytest.raises(AssertionError):
            other.ask("second", "/fetch", url=f"{cluster.service('first')}/name")
        allocation = read_allocation(other.local.state)
        assert allocation is not None
        assert set(traces(other.local.state, allocation.index)) >= {
            "processes",
            "links",
            "routes",
            "rules",
            "namespaces",
        }
        other.local.down()  # which keeps its number: without a state, another worker's cluster may have it at once
        assert traces(other.local.state, allocation.index) == {}
    finally:
        other.local.down(delete_state=True)
    assert not other.local.state.exists()
    assert cluster.ask("first", "/name") == before
    assert cluster.ask("first", "/fetch", url="http://first/name").startswith("first-")


def test_up_after_the_state_folder_was_deleted_starts_from_scratch(cluster: Cluster, tmp_path: Path) -> None:
    other = Cluster("deleted", tmp_path)
    try:
        other.up()
        before = {process.pid for process in marked(other.local.state)}
        other.local.state.rename(tmp_path / "gone")
        other.up()
        assert before.isdisjoint(process.pid for process in marked(other.local.state))
        assert "kube-system" in other.kubectl("get", "namespaces")
    finally:
        other.local.down(delete_state=True)


async def test_a_port_forward_reaches_a_service_and_survives_a_kill_of_kubectl(cluster: Cluster) -> None:
    info = cluster.up()
    kubectl = Toolchain.default().find("kubectl")
    cluster.wait_for("first")
    async with (
        PortForward(info.kubeconfig, info.context, "default", "svc/first", 80, kubectl=kubectl) as forward,
        httpx2.AsyncClient(base_url=forward.url, trust_env=False) as client,
    ):
        assert (await client.get("/name")).text.startswith("first-")
        os.kill(forward_pid(forward.port), signal.SIGKILL)
        await eventually("an answer through the forward", partial(to_thread.run_sync, answers, forward.url))
        pid = forward_pid(forward.port)
    assert identify(pid) is None


def test_an_ingress_is_served_with_a_verified_certificate_and_is_remembered(cluster: Cluster) -> None:
    host = "probe.example.test"
    info = cluster.up(ingress=True)
    cluster.wait_for("first")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(ingress_of("first", host)))
    eventually_sync("the domain", lambda: ask_by_domain(info, host), lambda text: text.startswith("first-"), within=90)
    before = [(status.name, status.pid) for status in cluster.local.status()]
    assert {"traefik", "cert-manager", "cert-manager-webhook"} <= {name for name, _ in before}
    assert cluster.up() == info
    assert [(status.name, status.pid) for status in cluster.local.status()] == before


def test_the_webhook_of_cert_manager_refuses_an_invalid_certificate(cluster: Cluster) -> None:
    cluster.up(ingress=True)
    spec = {
        "secretName": "wrong",
        "dnsNames": ["wrong.example.test"],
        "duration": "1h",
        "renewBefore": "2h",
        "issuerRef": {"kind": "ClusterIssuer", "name": CLUSTER_ISSUER},
    }
    wrong = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "wrong"}, "spec": spec}

    def refusal() -> str:
        try:
            return cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(wrong))
        except AssertionError as error:
            return str(error)

    eventually_sync("a refusal", refusal, lambda text: "webhook.cert-manager.io" in text and "renewBefore" in text)


def test_pods_of_two_nodes_reach_each_other_and_a_stateful_set_leaves_a_dead_node(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.up()
    cluster.wait_for("first")
    before = cluster.ask("first", "/name")
    first, second = cluster.up(nodes=2).nodes
    assert cluster.ask("first", "/name") == before
    assert {status.state for status in cluster.local.status()} == {"running"}
    manifests = movable(push_probe(cluster.info, tmp_path), second)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}))
    cluster.kubectl("rollout", "status", "statefulset/movable", f"--timeout={POD_SECONDS}s")
    eventually_sync("an answer of movable", lambda: cluster.answers("movable"), within=POD_SECONDS)
    node, address = place_of(cluster, "movable-0")
    assert node == second
    assert place_of(cluster, before)[0] == first
    for url in ("http://movable/name", f"http://{address}:8080/name"):
        assert cluster.ask("first", "/fetch", url=url) == "movable-0"
    assert cluster.ask("movable", "/fetch", url="http://first/name") == before
    assert cluster.ask("movable", "/fetch", url=f"http://{cluster.info.registry_bridge}/v2/") == "{}"
    cluster.kubectl("logs", "movable-0")
    httpx2.put(f"{cluster.service('movable')}/kept", content=b"moves", trust_env=False).raise_for_status()

    kill_node(cluster.local, second)
    eventually_sync("movable on the first node", lambda: place_of(cluster, "movable-0")[0], first.__eq__, within=240)
    eventually_sync("an answer of movable", lambda: cluster.answers("movable"), within=POD_SECONDS)
    assert cluster.ask("movable", "/kept") == "moves"
    assert cluster.ask("first", "/fetch", url="http://movable/name") == "movable-0"

    cluster.up()
    assert {status.state for status in cluster.local.status()} == {"running"}
    taints = ("get", "node", second, "-o", "jsonpath={.spec.taints}")
    eventually_sync("the second node in service", lambda: cluster.kubectl(*taints), lambda text: not text)

    cluster.kubectl("delete", "pod", "movable-0")  # its next one prefers the second node again
    eventually_sync("movable on the second node", lambda: place_of(cluster, "movable-0")[0], second.__eq__, within=240)
    assert cluster.up(nodes=1).nodes == (first,)
    assert cluster.kubectl("get", "nodes", "-o", "name").split() == [f"node/{first}"]
    check_removed(cluster, 2)
    eventually_sync("movable on the first node", lambda: place_of(cluster, "movable-0")[0], first.__eq__, within=240)
    eventually_sync("an answer of movable", lambda: cluster.answers("movable"), within=POD_SECONDS)
    assert cluster.ask("movable", "/kept") == "moves"
    assert cluster.ask("first", "/name") == before
    assert {status.state for status in cluster.local.status()} == {"running"}


def check_removed(cluster: Cluster, number: int) -> None:
    """Check that nothing of a node is left on this machine."""
    allocation = read_allocation(cluster.local.state)
    assert allocation is not None
    node = NodeLayout(layout_of(allocation, cluster.local.state), number)
    assert cgroups.processes(node.cgroup) == []
    assert not node.network_namespace_file.exists()
    commands = [Path(f"/proc/{process.pid}/cmdline").read_text() for process in marked(cluster.local.state)]
    assert not [command for command in commands if f"node{number}" in command]
    left = [
        path for path in cluster.local.state.rglob("*") if path.name.startswith((f"node{number}", f"kubelet-{number}."))
    ]
    assert [path for path in left if path.suffix != ".log"] == []


def test_down_leaves_only_the_state_from_which_up_restores_the_cluster(cluster: Cluster) -> None:
    cluster.up()
    httpx2.put(f"{cluster.service('first')}/kept", content=b"over night", trust_env=False).raise_for_status()
    allocation = read_allocation(cluster.local.state)
    assert allocation is not None
    cluster.local.down()
    assert traces(cluster.local.state, allocation.index) == {}
    cluster.up()
    cluster.wait_for("first")
    assert cluster.ask("first", "/kept") == "over night"
