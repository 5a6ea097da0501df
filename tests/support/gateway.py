"""The Gateway API in a Kubernetes cluster of the tests: its resource definitions, and a Gateway with a certificate."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

from reside.local import Toolchain
from reside.local.layout import CLUSTER_ISSUER, INGRESS_CLASS
from reside.local.toolchain import RESOURCE_FILES

if TYPE_CHECKING:
    from reside.local import ClusterInfo

GATEWAY = "default/public/https"
"""The listener of the Gateway of `gateway`, as the setting `gateway` names it."""
_GROUP = "gateway.networking.k8s.io"


def install_definitions(cluster: ClusterInfo) -> None:
    """Install the resource definitions of the Gateway API, as `reside local up --ingress` does."""
    tools = Toolchain.default()
    names = [name for name in RESOURCE_FILES if name.startswith(_GROUP)]
    files = [argument for name in names for argument in ("-f", str(tools.find(name)))]
    _kubectl(cluster, "apply", "--server-side", *files)
    definitions = [f"crd/{name.removesuffix('.yaml').partition('_')[2]}.{_GROUP}" for name in names]
    _kubectl(cluster, "wait", "--for=condition=Established", "--timeout=60s", *definitions)


def create_gateway(cluster: ClusterInfo, domain: str) -> None:
    """Create a Gateway for a domain in the namespace `default`, with a certificate of the local cluster's issuer."""
    namespace, name, listener = GATEWAY.split("/")
    secret = f"{name}-tls"
    issuer = {"kind": "ClusterIssuer", "name": CLUSTER_ISSUER}
    https = {
        "name": listener,
        "protocol": "HTTPS",
        "port": 443,
        "hostname": domain,
        "tls": {"mode": "Terminate", "certificateRefs": [{"name": secret}]},
        "allowedRoutes": {"namespaces": {"from": "All"}},
    }
    certificate = {"secretName": secret, "dnsNames": [domain], "issuerRef": issuer}
    objects = [
        _object("cert-manager.io/v1", "Certificate", name, namespace, certificate),
        _object(f"{_GROUP}/v1", "Gateway", name, namespace, {"gatewayClassName": INGRESS_CLASS, "listeners": [https]}),
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    _kubectl(cluster, "apply", "-f", "-", text=text)


def _object(api_version: str, kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def _kubectl(info: ClusterInfo, *arguments: str, text: str | None = None) -> None:
    command = [str(Toolchain.default().find("kubectl")), "--kubeconfig", str(info.kubeconfig), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
