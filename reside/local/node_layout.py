"""Addresses, names and paths of one node of a local cluster, derived from the cluster's layout and the node's number.

The *first node* has the number 1. Etcd, API server, controller-manager and scheduler run in its namespaces, beside its
kubelet. Each *further node* has namespaces, a containerd, a kubelet and a kube-proxy of its own:

* `10.N.(K-1).0/24` are the pods of node K,
* `10.N.254.K` is the address of node K, from the second; the first one has `layout.node_address`.
"""

from dataclasses import dataclass
from pathlib import Path

from reside.local.layout import Layout

NODES = range(1, 17)
"""Numbers of nodes. Their pods are in 10.N.0.0/20."""


@dataclass(frozen=True)
class NodeLayout:
    """The names, addresses and paths of one node.

    Args:
        cluster: layout of the local cluster.
        number: number of the node, one of `NODES`.
    """

    cluster: Layout
    number: int

    @property
    def is_first(self) -> bool:
        """Whether the control plane is on this node."""
        return self.number == NODES.start

    @property
    def _suffix(self) -> str:
        return "" if self.is_first else f"-{self.number}"

    def _folder(self, parent: Path) -> Path:
        return parent if self.is_first else parent / f"node{self.number}"

    # Addresses

    @property
    def address(self) -> str:
        """Address on which the node's components listen."""
        return self.cluster.node_address if self.is_first else f"{self.cluster.prefix}.254.{self.number}"

    @property
    def pod_range(self) -> str:
        """Addresses of the node's pods (CIDR)."""
        return f"{self.cluster.prefix}.{self.number - 1}.0/24"

    @property
    def pod_gateway(self) -> str:
        """Address of the node in its pods' network."""
        return f"{self.cluster.prefix}.{self.number - 1}.1"

    # Names

    @property
    def name(self) -> str:
        """Name of the Kubernetes node."""
        return f"reside-{self.cluster.name}{self._suffix}"

    @property
    def namespace(self) -> str:
        """Name of the network namespace."""
        return f"reside{self.cluster.index}{self._suffix}"

    @property
    def interface(self) -> str:
        """Name of the interface to this node on the first node; the first node has none."""
        return f"node{self.number}"

    @property
    def cgroup(self) -> str:
        """Path of the parent control group of the node's pods, without a leading slash; inside the cluster's group."""
        return self.cluster.cgroup if self.is_first else f"{self.cluster.cgroup}/node{self.number}"

    @property
    def pods_cgroup(self) -> str:
        """Path of the control group in which the kubelet creates those of the pods."""
        return f"{self.cgroup}/kubepods"

    def component(self, name: str) -> str:
        """Return the name of a component of this node, for example `kubelet-2`."""
        return f"{name}{self._suffix}"

    # Paths

    @property
    def state(self) -> Path:
        """Folder of the node's durable state."""
        return self._folder(self.cluster.state)

    @property
    def config(self) -> Path:
        """Folder of the node's generated configuration files."""
        return self._folder(self.cluster.config)

    @property
    def runtime(self) -> Path:
        """Folder of the node's sockets and namespaces."""
        return self._folder(self.cluster.runtime)

    @property
    def containerd_socket(self) -> Path:
        """Socket of this node's containerd."""
        return self.runtime / "containerd.sock"

    @property
    def network_namespace_file(self) -> Path:
        """File that pins the network namespace."""
        return Path("/run/netns") / self.namespace

    @property
    def mount_namespace_file(self) -> Path:
        """File that pins the mount namespace."""
        return self.runtime / "pins" / "mnt"

    @property
    def kubelet_root(self) -> Path:
        """The kubelet's folder in its mount namespace: `state / "kubelet"`, mounted under a short path."""
        return self.runtime / "kubelet"


def first_node(layout: Layout) -> NodeLayout:
    """Return the node with the control plane."""
    return NodeLayout(layout, NODES.start)


def nodes(layout: Layout) -> list[NodeLayout]:
    """Return all nodes of a local cluster; a control plane alone has none."""
    return [] if layout.control_plane_only else [NodeLayout(layout, number) for number in NODES[: layout.nodes]]


def existing_nodes(layout: Layout) -> list[NodeLayout]:
    """Return the nodes of which something exists on the machine, whatever the layout says."""
    found = [NodeLayout(layout, number) for number in NODES]
    return [node for node in found if node.network_namespace_file.exists() or node.mount_namespace_file.exists()]
