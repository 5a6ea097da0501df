"""Write self-contained kubeconfigs: one for the administrator, one for each component."""

import base64
from pathlib import Path

import yaml

from reside.common.files import write_private
from reside.local.layout import Layout
from reside.local.node_layout import nodes
from reside.local.pki import CERT_MANAGER, KUBERNETES_CA, TRAEFIK, certificate_path, key_path

COMPONENTS = ("kube-controller-manager", "kube-scheduler", "kube-proxy")
INGRESS_COMPONENTS = (TRAEFIK, CERT_MANAGER)


def component_kubeconfig(layout: Layout, component: str) -> Path:
    """Return the path of a component's kubeconfig."""
    return layout.config / f"{component}.kubeconfig"


def write_kubeconfigs(layout: Layout) -> None:
    """Write the kubeconfigs of the administrator and of every component, with mode 0600."""
    layout.config.mkdir(parents=True, exist_ok=True, mode=0o700)
    _write(layout.kubeconfig, _render(layout, "admin"))
    kubelets = [node.component("kubelet") for node in nodes(layout)]
    for component in (*COMPONENTS, *kubelets, *(INGRESS_COMPONENTS if layout.ingress else ())):
        _write(component_kubeconfig(layout, component), _render(layout, component))


def _render(layout: Layout, identity: str) -> str:
    name = layout.context
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": layout.api_url,
                    "certificate-authority-data": _encoded(certificate_path(layout.pki, KUBERNETES_CA)),
                },
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate-data": _encoded(certificate_path(layout.pki, identity)),
                    "client-key-data": _encoded(key_path(layout.pki, identity)),
                },
            }
        ],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }
    return str(yaml.safe_dump(config, sort_keys=False))


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _write(path: Path, content: str) -> None:
    if path.exists() and path.read_text() == content:
        return
    write_private(path, content)
