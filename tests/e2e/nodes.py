"""The death of a node of a local cluster: SIGKILL to everything that a machine would take with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reside.local import LocalCluster, cgroups
from reside.local.allocation import layout_of, read_allocation
from reside.local.node_layout import NodeLayout, nodes
from reside.local.processes import marked
from reside.local.supervise import end_all

if TYPE_CHECKING:
    from reside.common.processes import ProcessId

_OF_A_NODE = ("kubelet", "containerd")


def kill_node(local: LocalCluster, name: str) -> None:
    """Kill kubelet, containerd, shims, kube-proxy and all pods of a node.

    On the first one, spare the control plane, and kube-proxy, through which this machine reaches Services.
    """
    allocation = read_allocation(local.state)
    assert allocation is not None
    (node,) = [node for node in nodes(layout_of(allocation, local.state)) if node.name == name]
    own = [node.component(component) for component in (*_OF_A_NODE, *(() if node.is_first else ("kube-proxy",)))]
    spared = {status.pid for status in local.status() if status.name not in own}
    end_all(lambda: _processes(local, node, spared), term_seconds=0)


def _processes(local: LocalCluster, node: NodeLayout, spared: set[int | None]) -> list[ProcessId]:
    inside = [process for process in marked(local.state) if _is_in(process, node) and process.pid not in spared]
    return [*inside, *cgroups.processes(node.pods_cgroup)]


def _is_in(process: ProcessId, node: NodeLayout) -> bool:
    try:
        return Path(f"/proc/{process.pid}/ns/net").stat().st_ino == node.network_namespace_file.stat().st_ino
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended
