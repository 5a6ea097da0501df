"""Which cluster a program works on, and how it reaches that cluster. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Access = Literal["in-cluster", "direct", "port-forward"]
"""By Service names (inside a pod), by cluster IP addresses, or by port-forward through the Kubernetes API."""


@dataclass(frozen=True)
class Target:
    """Identify a cluster and the way to reach it.

    Args:
        namespace: Kubernetes namespace of the cluster.
        access: how Services are reached.
        kubeconfig: path of the kubeconfig; None: the default locations.
        kube_context: context in the kubeconfig; None: the current one.
        deadline: deadline in seconds for each wait.
    """

    namespace: str
    access: Access
    kubeconfig: str | None
    kube_context: str | None
    deadline: float
