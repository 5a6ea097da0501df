"""The embedded Kubernetes: upstream binaries that this package starts and stops on this machine.

A *local cluster* has a name and a state folder. It is a *full cluster*, with a node, or a *control plane alone*.

>>> cluster = LocalCluster("default")
>>> cluster.up().kubeconfig  # doctest: +SKIP
PosixPath('/root/.local/share/reside/local/default/kubeconfig')
"""

from typing import TYPE_CHECKING, Any

from reside.local.errors import (
    ComponentFailedError,
    LocalError,
    NeedsRootError,
    NoSuchClusterError,
    ToolMissingError,
    UnknownComponentError,
    UsageError,
)
from reside.local.events import ComponentStatus, Event, Progress
from reside.local.info import ClusterInfo, read_info
from reside.local.layout import REGISTRY_HOST
from reside.local.toolchain import Toolchain

if TYPE_CHECKING:
    from reside.local.cluster import LocalCluster, default_state

__all__ = [
    "REGISTRY_HOST",
    "ClusterInfo",
    "ComponentFailedError",
    "ComponentStatus",
    "Event",
    "LocalCluster",
    "LocalError",
    "NeedsRootError",
    "NoSuchClusterError",
    "Progress",
    "ToolMissingError",
    "Toolchain",
    "UnknownComponentError",
    "UsageError",
    "default_state",
    "read_info",
]


def __getattr__(name: str) -> Any:
    """Import `LocalCluster` and `default_state` on first use: commands that only need a tool start faster."""
    if name not in ("LocalCluster", "default_state"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from reside.local import cluster  # noqa: PLC0415 - see above

    return getattr(cluster, name)
