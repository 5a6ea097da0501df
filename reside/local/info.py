"""How to reach a local cluster, stored as JSON in its state folder for other packages."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reside.common.files import write_private
from reside.local.allocation import known_members
from reside.local.layout import CLUSTER_ISSUER, REGISTRY_HOST, Layout
from reside.local.node_layout import nodes

INFO_FILE = "info.json"


@dataclass(frozen=True)
class ClusterInfo:
    """How to reach a local cluster.

    Args:
        name: name of the local cluster.
        kubeconfig: kubeconfig with the administrator's client certificate.
        context: context in this kubeconfig.
        api_url: URL of the API server.
        bridge_address: address under which pods reach the machine; None for a control plane alone.
        service_range: addresses of Services (CIDR); the machine of a full cluster can reach them.
        registry_host: name of the image registry in image references.
        registry_loopback: `host:port` of the registry for the machine itself (plain HTTP); None without a node.
        registry_bridge: `host:port` of the registry for pods (plain HTTP); None without a node.
        ingress_address: address on which the ingress controller serves HTTPS; None without one.
        ingress_issuer: ClusterIssuer for the certificates of domains; None without an ingress controller.
        ingress_authority: file with the CA certificate of this issuer; None without an ingress controller.
        nodes: names of the Kubernetes nodes.
    """

    name: str
    kubeconfig: Path
    context: str
    api_url: str
    bridge_address: str | None
    service_range: str
    registry_host: str
    registry_loopback: str | None
    registry_bridge: str | None
    ingress_address: str | None = None
    ingress_issuer: str | None = None
    ingress_authority: Path | None = None
    nodes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; paths are strings."""
        authority = str(self.ingress_authority) if self.ingress_authority else None
        texts = {"kubeconfig": str(self.kubeconfig), "ingress_authority": authority, "nodes": list(self.nodes)}
        return {**dataclasses.asdict(self), **texts}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ClusterInfo":
        """Return the value of a JSON form; members of a later release are ignored."""
        authority = data.get("ingress_authority")
        paths = {"kubeconfig": Path(data["kubeconfig"]), "ingress_authority": Path(authority) if authority else None}
        return cls(**{**known_members(cls, data), **paths, "nodes": tuple(data.get("nodes", ()))})


def describe(layout: Layout) -> ClusterInfo:
    """Return how to reach the local cluster with this layout."""
    from reside.local.pki import INGRESS_CA, certificate_path  # noqa: PLC0415 - slow to import; readers do without

    has_node = not layout.control_plane_only
    return ClusterInfo(
        name=layout.name,
        kubeconfig=layout.kubeconfig,
        context=layout.context,
        api_url=layout.api_url,
        bridge_address=layout.host_address if has_node else None,
        service_range=layout.service_range,
        registry_host=REGISTRY_HOST,
        registry_loopback=f"127.0.0.1:{layout.registry_loopback_port}" if has_node else None,
        registry_bridge=f"{layout.host_address}:{layout.registry_bridge_port}" if has_node else None,
        ingress_address=layout.node_address if layout.ingress else None,
        ingress_issuer=CLUSTER_ISSUER if layout.ingress else None,
        ingress_authority=certificate_path(layout.pki, INGRESS_CA) if layout.ingress else None,
        nodes=tuple(node.name for node in nodes(layout)),
    )


def write_info(state: Path, info: ClusterInfo) -> None:
    """Write the description to the state folder; an older one is replaced atomically."""
    write_private(state / INFO_FILE, json.dumps(info.to_json(), indent=2) + "\n")


def read_info(state: Path) -> ClusterInfo | None:
    """Return the description in a state folder; None if the local cluster was never up."""
    path = state / INFO_FILE
    if not path.exists():
        return None
    return ClusterInfo.from_json(json.loads(path.read_text()))
