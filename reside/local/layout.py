"""Addresses, ports and paths of one local cluster, all derived from its name, index and state folder.

Every local cluster has an index that is unique on the machine (see `allocation`). A full cluster with index *i* has
the network `10.N.0.0/16` with *N* = 100 + *i*, and its own network namespace, so that its components use their default
ports:

* `10.N.0.0/20` are pods, with one `/24` for each node (see `node_layout`),
* `10.N.128.0/18` are Services; `10.N.128.1` is the API and `10.N.128.10` the DNS,
* `10.N.254.0/24` are further nodes,
* `10.N.255.1` is the machine's address and `10.N.255.2` the first node's address on the link between them.

A control plane alone listens on the machine's loopback and has its own block of ports.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from reside.local.errors import UsageError

REGISTRY_HOST = "registry.reside.internal"
"""The registry host in the names of images, inside and outside of the cluster; it is never looked up in public DNS."""

CLUSTER_DOMAIN = "cluster.local"
INGRESS_CLASS = "traefik"
CLUSTER_ISSUER = "reside-ca"
INDEXES = range(100)
"""One index for each local cluster on a machine; limited by the private networks 10.100 to 10.199."""

_FIRST_OCTET = 100
_CONTROL_PLANE_PORTS = 22000
_PORTS_PER_CLUSTER = 10
_REGISTRY_PORTS = 21000
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
RUNTIME_ROOT = Path("/run/reside")


def check_name(name: str) -> str:
    """Return a name if it is a DNS label of at most 32 characters.

    Raises:
        UsageError: it is not.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name of a local cluster: "
            "use at most 32 lower-case letters, digits and inner hyphens."
        )
    return name


@dataclass(frozen=True)
class Layout:
    """The names, addresses and paths of one local cluster.

    Args:
        name: name of the local cluster, a DNS label.
        index: its index on this machine, one of `INDEXES`.
        state: folder of all durable state.
        control_plane_only: whether it is a control plane on loopback, without a node.
        ingress: whether it has an ingress controller and cert-manager.
        nodes: number of its nodes; a control plane alone has none, whatever this says.
    """

    name: str
    index: int
    state: Path
    control_plane_only: bool
    ingress: bool = False
    nodes: int = 1

    @property
    def prefix(self) -> str:
        """First two numbers of all addresses of a full cluster."""
        return f"10.{_FIRST_OCTET + self.index}"

    def _port(self, offset: int, default: int) -> int:
        if not self.control_plane_only:
            return default
        return _CONTROL_PLANE_PORTS + self.index * _PORTS_PER_CLUSTER + offset

    # Addresses

    @property
    def network(self) -> str:
        """Network that contains all addresses of a full cluster (CIDR)."""
        return f"{self.prefix}.0.0/16"

    @property
    def host_address(self) -> str:
        """Address of the machine on the link to the first node; pods reach the machine under it."""
        return f"{self.prefix}.255.1"

    @property
    def node_address(self) -> str:
        """Address on which the control plane and the components of the first node listen."""
        return "127.0.0.1" if self.control_plane_only else f"{self.prefix}.255.2"

    @property
    def service_range(self) -> str:
        """Addresses of Services (CIDR)."""
        return "10.96.0.0/16" if self.control_plane_only else f"{self.prefix}.128.0/18"

    @property
    def api_service_address(self) -> str:
        """Address of the Service `kubernetes`: the first of the range."""
        return "10.96.0.1" if self.control_plane_only else f"{self.prefix}.128.1"

    @property
    def dns_address(self) -> str:
        """Address of the cluster's DNS."""
        return f"{self.prefix}.128.10"

    # Ports

    @property
    def api_port(self) -> int:
        """Port of the API server."""
        return self._port(0, 6443)

    @property
    def etcd_port(self) -> int:
        """Port of etcd for clients."""
        return self._port(1, 2379)

    @property
    def etcd_peer_port(self) -> int:
        """Port of etcd for other members; there are none."""
        return self._port(2, 2380)

    @property
    def controller_manager_port(self) -> int:
        """Port of the controller-manager's health endpoint."""
        return self._port(3, 10257)

    @property
    def loopback_ports(self) -> list[int]:
        """All ports that this local cluster needs on the machine's loopback."""
        if self.control_plane_only:
            return [self.api_port, self.etcd_port, self.etcd_peer_port, self.controller_manager_port]
        return [self.registry_loopback_port]

    @property
    def registry_loopback_port(self) -> int:
        """Port of the image registry on the machine's loopback."""
        return _REGISTRY_PORTS + self.index

    @property
    def registry_bridge_port(self) -> int:
        """Port of the image registry on the link to the node. Other registries often use 5000, so it is not used."""
        return self.registry_loopback_port

    # Names

    @property
    def context(self) -> str:
        """Name of the kubeconfig's context."""
        return f"reside-{self.name}"

    @property
    def link(self) -> str:
        """Name of the machine's network interface to the node."""
        return f"reside{self.index}"

    @property
    def cgroup(self) -> str:
        """Path of the parent control group of all pods, without a leading slash."""
        return f"reside{self.index}"

    @property
    def api_url(self) -> str:
        """URL under which the machine reaches the API server."""
        return f"https://{self.node_address}:{self.api_port}"

    # Paths

    @property
    def pki(self) -> Path:
        """Folder of certificates and keys."""
        return self.state / "pki"

    @property
    def config(self) -> Path:
        """Folder of generated configuration files and the components' kubeconfigs."""
        return self.state / "config"

    @property
    def logs(self) -> Path:
        """Folder of logs, one file for each component."""
        return self.state / "logs"

    @property
    def pids(self) -> Path:
        """Folder of records of running processes, one file for each component."""
        return self.state / "run"

    @property
    def kubeconfig(self) -> Path:
        """Path of the administrator's kubeconfig."""
        return self.state / "kubeconfig"

    @property
    def runtime(self) -> Path:
        """Folder of a full cluster's sockets and namespaces; short, because a socket's path has at most 107 bytes."""
        return RUNTIME_ROOT / str(self.index)
