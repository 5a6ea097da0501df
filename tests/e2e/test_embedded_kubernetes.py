"""The embedded Kubernetes: pods, Services, DNS, volumes; repair after SIGKILL; nothing remains after down."""

import json
import os
import re
import signal
import ssl
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from anyio import to_thread
from e2e.nodes import kill_node
from e2e.probe_image import push_probe
from support.clusters import fresh_state
from support.eventually import eventually, eventually_sync

from reside.access.forward import PortForward
from reside.common.processes import identify
from reside.common.tls import trusted_authorities
from reside.local import ClusterInfo, LocalCluster, cgroups
from reside.local.allocation import read_allocation
from reside.local.layout import CLUSTER_ISSUER
from reside.local.processes import marked
from reside.local.supervise import end_all
from reside.local.toolchain import Toolchain

pytestmark = pytest.mark.anyio
POD_SECONDS = 90


class Cluster:
    """One full local cluster under test, with the probe in its registry."""

    def __init__(self, name: str, folder: Path) -> None:
        self.local = LocalCluster(name, fresh_state(name))
        self.folder = folder

    def up(self, *, ingress: bool = False, nodes: int | None = None) -> ClusterInfo:
        """Start or repair the cluster."""
        self.info = LocalCluster(self.local.name, self.local.state, ingress=ingress, nodes=nodes).up()
        return self.info

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as the cluster's administrator."""
        binary = Toolchain.default().find("kubectl")
        command = [binary, "--kubeconfig", self.info.kubeconfig, "--context", self.info.context, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, f"kubectl {arguments}: {done.stderr}"
        return done.stdout

    def run_probe(self, name: str) -> None:
        """Run the probe as a Deployment with a Service and a volume claim, as a user who is not root."""
        image = push_probe(self.info, self.folder)
        self.kubectl(
            "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": probe(name, image)})
        )
        self.wait_for(name)

    def wait_for(self, name: str) -> None:
        """Wait until a probe answers through its Service."""
        self.kubectl("rollout", "status", f"deployment/{name}", f"--timeout={POD_SECONDS}s")
        eventually_sync(f"an answer of {name}", lambda: self.answers(name), within=POD_SECONDS)

    def answers(self, name: str) -> bool:
        """Send one request to a probe, through its Service."""
        return answers(self.service(name))

    def service(self, name: str) -> str:
        """Return the URL of a Service by its cluster address, which the machine itself reaches."""
        return f"http://{self.kubectl('get', 'service', name, '-o', 'jsonpath={.spec.clusterIP}')}"

    def ask(self, name: str, path: str, /, **query: str) -> str:
        """Send a request to a probe, and return its response."""
        answer = httpx2.get(
            f"{self.service(name)}{path}", params=query, timeout=10, verify=trusted_authorities(), trust_env=False
        )
        assert answer.is_success, answer.text
        return answer.text

    def kill_everything(self) -> None:
        """Kill -9 every process of the instance, containers and their shims included."""
        allocation = read_allocation(self.local.state)
        assert allocation is not None
        group = f"reside{allocation.index}"
        end_all(lambda: [*marked(self.local.state), *cgroups.processes(group)], term_seconds=0)
        assert list(marked(self.local.state)) == []


def probe(name: str, image: str) -> list[dict[str, Any]]:
    labels = {"app": name}
    container = {
        "name": "probe",
        "image": image,
        "ports": [{"containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/name", "port": 8080}, "periodSeconds": 1},
        "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "allowPrivilegeEscalation": False},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    deployment = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    service = {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}
    kinds = [
        ("v1", "PersistentVolumeClaim", claim),
        ("apps/v1", "Deployment", deployment),
        ("v1", "Service", service),
    ]
    return [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec} for version, kind, spec in kinds
    ]


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


def traces(state: Path, index: int) -> dict[str, list[str]]:
    """Return everything on this machine that a cluster with this state and number could have left."""
    name = f"reside{index}"
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    links = subprocess.run(["ip", "-o", "link"], check=True, capture_output=True, text=True).stdout.splitlines()
    routes = subprocess.run(["ip", "route"], check=True, capture_output=True, text=True).stdout.splitlines()
    rules = (
        subprocess.run(["iptables-save"], check=True, capture_output=True, text=True)
        .stdout.replace('"', "")
        .splitlines()
    )
    found = {
        "processes": [str(process.pid) for process in [*marked(state), *cgroups.processes(name)]],
        "mounts": [
            line for line in mounts if f"/{name}" in line or str(state) in line or f"/run/reside/{index}" in line
        ],
        "links": [line for line in links if f" {name}@" in line],
        "routes": [line for line in routes if f"dev {name}" in line or line.startswith(f"10.{100 + index}.")],
        "rules": [line for line in rules if f"reside-local:{index}" in line.split() or name in line.split()],
        "namespaces": [str(path) for path in Path("/run/netns").iterdir() if path.name.split("-")[0] == name],
        "groups": [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/{name}")],
        "sockets": [str(path) for path in Path("/run/reside").glob(str(index))],
    }
    return {kind: items for kind, items in found.items() if items}


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


def firewall(index: int) -> list[str]:
    """Return the machine's own filter rules for an instance, in their order."""
    shown = subprocess.run(["iptables", "-w", "-S"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.replace('"', "") for line in shown if f"reside-local:{index}" in line.replace('"', "").split()]


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


def answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/name", timeout=2, verify=trusted_authorities(), trust_env=False).is_success
    except httpx2.HTTPError:
        return False


def forward_pid(port: int) -> int:
    """Return the process that listens on a port of the loopback."""
    listening = subprocess.run(["ss", "-Hltnp", f"src 127.0.0.1:{port}"], check=True, capture_output=True, text=True)
    match = re.search(r"pid=(\d+)", listening.stdout)
    assert match, listening.stdout
    return int(match[1])


def ingress_of(name: str, host: str) -> dict[str, Any]:
    backend = {"service": {"name": name, "port": {"number": 80}}}
    rule = {"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
    issuer = {"cert-manager.io/cluster-issuer": CLUSTER_ISSUER}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": host, "annotations": issuer},
        "spec": {"tls": [{"hosts": [host], "secretName": f"{host}-tls"}], "rules": [rule]},
    }


def ask_by_domain(info: ClusterInfo, host: str) -> str:
    """Return what the domain serves; an empty text while its certificate isn't the one of the ClusterIssuer."""
    context = ssl.create_default_context(cafile=str(info.ingress_authority))
    try:
        with httpx2.Client(verify=context, trust_env=False, timeout=10) as client:
            url = f"https://{info.ingress_address}/name"
            answer = client.get(url, headers={"Host": host}, extensions={"sni_hostname": host})
    except httpx2.TransportError:
        return ""
    return answer.text if answer.is_success else ""


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


def movable(image: str, node: str) -> list[dict[str, Any]]:
    """Return a StatefulSet with a volume and a Service, whose pod prefers a node."""
    claim, deployment, service = probe("movable", image)
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    preferred = [{"weight": 100, "preference": term}]
    pod = deployment["spec"]["template"]["spec"]
    pod["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    spec = {**deployment["spec"], "serviceName": "movable"}
    return [claim, {**deployment, "kind": "StatefulSet", "spec": spec}, service]


def place_of(cluster: Cluster, pod: str) -> tuple[str, str]:
    """Return node and address of a pod that is ready and not being deleted; two empty texts if there is none."""
    found = cluster.kubectl("get", "pods", "--field-selector", f"metadata.name={pod}", "-o", "json")
    for item in json.loads(found)["items"]:
        conditions = item["status"].get("conditions", [])
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
        if ready and "deletionTimestamp" not in item["metadata"]:
            return item["spec"]["nodeName"], item["status"]["podIP"]
    return "", ""


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
