"""kubeconfig and port-forward by kubectl; no knowledge of ReSide."""

from reside.kube.config import Context, Kubeconfig, default_files, load
from reside.kube.errors import KubeconfigError, KubectlMissingError, KubeError, PortForwardError
from reside.kube.forward import PortForward, find_kubectl

__all__ = [
    "Context",
    "KubeError",
    "Kubeconfig",
    "KubeconfigError",
    "KubectlMissingError",
    "PortForward",
    "PortForwardError",
    "default_files",
    "find_kubectl",
    "load",
]
