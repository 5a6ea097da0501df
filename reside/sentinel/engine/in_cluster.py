"""A kubeconfig for the service account of the pod.

The provider uses the service account by itself only if it finds no other kubeconfig, so it gets one explicitly. The
file contains the path of the token and not the token, because Kubernetes rotates it.
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
    """Write the kubeconfig, with the address of the API server that each pod has in its environment.

    Raises:
        EngineBroken: the environment is not that of a pod.
    """
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise EngineBroken("not running in a pod: set RESIDE_KUBECONFIG to the path of a kubeconfig")
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
