"""What other parts of the system need to know of a local cluster, kept as JSON in its state folder."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reside.common.files import write_private
from reside.local.layout import REGISTRY_HOST, Layout

INFO_FILE = "info.json"


@dataclass(frozen=True)
class ClusterInfo:
    """How to reach a local cluster.

    Args:
        name: The instance's name.
        kubeconfig: A kubeconfig with an administrator's client certificate.
        context: That kubeconfig's context.
        api_url: The API server.
        bridge_address: The machine's own address as pods reach it; None for a control plane alone.
        service_range: Addresses of Services (CIDR); reachable from the machine of a whole cluster.
        registry_host: The image registry's name in image references.
        registry_loopback: `host:port` of the registry for the machine itself (plain HTTP); None without a node.
        registry_bridge: `host:port` of the registry for pods (plain HTTP); None without a node.
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

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; paths are strings."""
        return {**dataclasses.asdict(self), "kubeconfig": str(self.kubeconfig)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ClusterInfo":
        """Read the JSON form."""
        return cls(**{**data, "kubeconfig": Path(data["kubeconfig"])})


def describe(layout: Layout) -> ClusterInfo:
    """Tell how to reach the instance with this layout."""
    whole = not layout.control_plane_only
    return ClusterInfo(
        name=layout.name,
        kubeconfig=layout.kubeconfig,
        context=layout.context,
        api_url=layout.api_url,
        bridge_address=layout.host_address if whole else None,
        service_range=layout.service_range,
        registry_host=REGISTRY_HOST,
        registry_loopback=f"127.0.0.1:{layout.registry_loopback_port}" if whole else None,
        registry_bridge=f"{layout.host_address}:{layout.registry_bridge_port}" if whole else None,
    )


def write_info(state: Path, info: ClusterInfo) -> None:
    """Keep the description in the state folder, replacing an older one at once."""
    write_private(state / INFO_FILE, json.dumps(info.to_json(), indent=2) + "\n")


def read_info(state: Path) -> ClusterInfo | None:
    """Read the description back; None if the instance was never up."""
    path = state / INFO_FILE
    if not path.exists():
        return None
    return ClusterInfo.from_json(json.loads(path.read_text()))
