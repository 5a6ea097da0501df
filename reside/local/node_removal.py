"""Remove nodes of a local cluster, with their pods, processes, namespaces and state.

A node that runs is drained first, so that its pods start elsewhere. Then the smaller number is stored. From then on
each `up` removes what remains of further nodes: an interrupted removal is completed by the next one. Volumes stay,
because they belong to no node.
"""

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from reside.common.processes import ProcessId
from reside.local import api, cgroups, namespaces
from reside.local.errors import LocalError
from reside.local.kubeconfigs import component_kubeconfig
from reside.local.layout import Layout
from reside.local.node_layout import NODES, NodeLayout, first_node, nodes
from reside.local.pki import certificate_path, key_path
from reside.local.processes import marked
from reside.local.shell import run, succeeds
from reside.local.supervise import Supervisor, end_all

DRAIN_SECONDS = 120
_NODES = "/api/v1/nodes"
_COMPONENTS = ("containerd", "kubelet", "kube-proxy")


class DrainError(LocalError):
    """Pods of a node did not end in time; the node stays."""


def drain(found: Iterable[NodeLayout], kubectl: Path) -> None:
    """Move all pods away from nodes.

    Raises:
        DrainError: a pod did not end. The nodes take pods again.
    """
    for node in found:
        options = ["--ignore-daemonsets", "--delete-emptydir-data", "--force", f"--timeout={DRAIN_SECONDS}s"]
        command = [str(kubectl), "--kubeconfig", str(node.cluster.kubeconfig)]
        done = subprocess.run([*command, "drain", node.name, *options], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            for each in nodes(node.cluster):
                subprocess.run([*command, "uncordon", each.name], capture_output=True, check=False)
            reason = " ".join(done.stderr.split()[-60:])
            raise DrainError(f"The pods of {node.name} did not end, so the node stays: {reason}")


def clean(layout: Layout, supervisor: Supervisor, components: Iterable[str]) -> list[NodeLayout]:
    """Remove what this machine has of further nodes than those of the layout; return these nodes.

    Args:
        layout: the layout.
        supervisor: the supervisor of the local cluster's processes.
        components: names of the components that the local cluster has.
    """
    found = [node for node in surplus(layout) if _remains(node)]
    if found:
        kept = set(components)
        recorded = [path.stem for path in layout.pids.glob("*.json")]
        supervisor.stop([name for name in recorded if name not in kept])
    for node in found:
        _remove(node)
    return found


def delete_objects(layout: Layout) -> None:
    """Delete the Kubernetes nodes that the layout does not have. Kubernetes deletes what is left of their pods."""
    names = {node.name for node in surplus(layout)}
    with api.connect(layout) as client:
        listed = client.get(_NODES) or {}
        for name in {item["metadata"]["name"] for item in listed.get("items", ())} & names:
            client.delete(f"{_NODES}/{name}")


def surplus(layout: Layout) -> list[NodeLayout]:
    """Return the nodes that the layout does not have."""
    return [NodeLayout(layout, number) for number in NODES[layout.nodes :]]


def _remains(node: NodeLayout) -> bool:
    return any(path.exists() for path in (node.network_namespace_file, node.mount_namespace_file, *_folders(node)))


def _folders(node: NodeLayout) -> list[Path]:
    return [node.state, node.config, node.runtime]


def _remove(node: NodeLayout) -> None:
    end_all(lambda: _processes(node))
    inside = ["ip", "-n", first_node(node.cluster).namespace, "link"]
    if succeeds(*inside, "show", node.interface):
        run(*inside, "delete", node.interface)
    namespaces.remove(node)
    cgroups.remove(node.cgroup)
    for folder in _folders(node):
        if folder.exists():
            shutil.rmtree(folder)
    kubelet = node.component("kubelet")
    pki = node.cluster.pki
    records = [node.cluster.pids / f"{node.component(name)}.json" for name in _COMPONENTS]
    own = (certificate_path(pki, kubelet), key_path(pki, kubelet), component_kubeconfig(node.cluster, kubelet))
    for path in (*own, *records):
        path.unlink(missing_ok=True)


def _processes(node: NodeLayout) -> list[ProcessId]:
    """Return the processes of the node's pods, and those of its components and their children."""
    state = node.cluster.state
    return [*(each for each in marked(state) if _is_in(each, node)), *cgroups.processes(node.cgroup)]


def _is_in(process: ProcessId, node: NodeLayout) -> bool:
    try:
        here = Path(f"/proc/{process.pid}/ns/net").stat().st_ino
        return here == node.network_namespace_file.stat().st_ino
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended, or the namespace is gone
