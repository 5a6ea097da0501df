"""A kubeconfig for the pod's service account.

The provider would find the account by itself, but only where no other kubeconfig lies around; a file of our own is what
it uses for sure. The token is named by its path, since Kubernetes rotates it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from reside.common.files import write_private
from reside.sentinel.engine.errors import EngineBroken

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def write_kubeconfig(path: Path, namespace: str, environment: Mapping[str, str]) -> None:
    """Write the kubeconfig to ``path``, from the addresses that every pod has in its environment.

    Raises:
        EngineBroken: this is no pod.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise EngineBroken("this is no pod of a cluster: give the Sentinel a kubeconfig (RESIDE_KUBECONFIG)")
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pod",
        "clusters": [{"name": "pod", "cluster": {"server": server, "certificate-authority": f"{_ACCOUNT}/ca.crt"}}],
        "users": [{"name": "pod", "user": {"tokenFile": f"{_ACCOUNT}/token"}}],
        "contexts": [{"name": "pod", "context": {"cluster": "pod", "user": "pod", "namespace": namespace}}],
    }
    write_private(path, json.dumps(config))  # JSON is YAML
