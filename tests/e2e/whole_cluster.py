"""A full local cluster under test, with a probe in it; and what a cluster leaves on the machine."""

import json
import re
import ssl
import subprocess
from pathlib import Path
from typing import Any

import httpx2
from e2e.probe_image import push_probe
from support.clusters import fresh_state
from support.eventually import eventually_sync

from reside.common.tls import trusted_authorities
from reside.local import ClusterInfo, LocalCluster, cgroups
from reside.local.allocation import read_allocation
from reside.local.layout import CLUSTER_ISSUER
from reside.local.processes import marked
from reside.local.supervise import end_all
from reside.local.toolchain import Toolchain

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


def answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/name", timeout=2, verify=trusted_authorities(), trust_env=False).is_success
    except httpx2.HTTPError:
        return False


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


def firewall(index: int) -> list[str]:
    """Return the machine's own filter rules for an instance, in their order."""
    shown = subprocess.run(["iptables", "-w", "-S"], check=True, capture_output=True, text=True).stdout.splitlines()
    return [line.replace('"', "") for line in shown if f"reside-local:{index}" in line.replace('"', "").split()]


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
