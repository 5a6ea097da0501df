"""Definitions of the components of an ingress: Traefik and cert-manager, with their configuration files.

They run in the node's network namespace, so that port 443 of the machine stays free, and listen on the node's address.
Only cert-manager's webhook, which can't be given an address, listens on all addresses of this namespace. There is no
cainjector: the webhook's certificate is one of `pki`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from reside.local.components import Component, Find, HttpHealth, flags
from reside.local.kubeconfigs import component_kubeconfig
from reside.local.layout import INGRESS_CLASS, Layout
from reside.local.pki import CERT_MANAGER, CERT_MANAGER_WEBHOOK, TRAEFIK, certificate_path, key_path

HTTPS_PORT = 443
WEBHOOK_PORT = 9443
NAMESPACE = "cert-manager"
_TRAEFIK_HEALTH_PORT = 9080
_WEBHOOK_HEALTH_PORT = 9444
_CONTROLLER_HEALTH_PORT = 9403
_API_SERVER = ("kube-apiserver",)


def ingress(layout: Layout, find: Find) -> list[Component]:
    """Return the components; they start after the objects of `ingress_objects`, which contain their roles."""
    return [_traefik(layout, find), *_cert_manager(layout, find)]


def _traefik(layout: Layout, find: Find) -> Component:
    options = {
        # The defaults send requests to Traefik's vendor
        "global.checknewversion": "false",
        "global.sendanonymoususage": "false",
        "api.dashboard": "false",
        "ping": "true",
        "entrypoints.websecure.address": f"{layout.node_address}:{HTTPS_PORT}",
        "entrypoints.websecure.http.tls": "true",
        "entrypoints.traefik.address": f"{layout.node_address}:{_TRAEFIK_HEALTH_PORT}",
        "providers.kubernetesingress": "true",
        "providers.kubernetesingress.ingressclass": INGRESS_CLASS,
        "providers.kubernetesingress.ingressendpoint.ip": layout.node_address,
        "providers.kubernetesgateway": "true",
        "providers.kubernetesgateway.statusaddress.ip": layout.node_address,
    }
    return Component(
        TRAEFIK,
        (str(find("traefik")), *flags(options)),
        HttpHealth(f"http://{layout.node_address}:{_TRAEFIK_HEALTH_PORT}/ping"),
        _API_SERVER,
        env={"KUBECONFIG": str(component_kubeconfig(layout, TRAEFIK))},
    )


def _cert_manager(layout: Layout, find: Find) -> list[Component]:
    binary = str(find("cert-manager"))
    return [
        Component(
            CERT_MANAGER_WEBHOOK,
            (binary, "webhook", "--config", str(layout.config / f"{CERT_MANAGER_WEBHOOK}.yaml")),
            HttpHealth(f"http://{layout.node_address}:{_WEBHOOK_HEALTH_PORT}/healthz"),
            _API_SERVER,
        ),
        Component(
            CERT_MANAGER,
            (binary, "controller", "--config", str(layout.config / f"{CERT_MANAGER}.yaml")),
            HttpHealth(f"http://{layout.node_address}:{_CONTROLLER_HEALTH_PORT}/livez"),
            (CERT_MANAGER_WEBHOOK,),
        ),
    ]


def config_files(layout: Layout) -> Mapping[Path, str]:
    """Return cert-manager's configuration files with their content."""
    return {
        layout.config / f"{CERT_MANAGER}.yaml": yaml.safe_dump(controller_config(layout), sort_keys=False),
        layout.config / f"{CERT_MANAGER_WEBHOOK}.yaml": yaml.safe_dump(webhook_config(layout), sort_keys=False),
    }


def controller_config(layout: Layout) -> dict[str, Any]:
    """Return the configuration of cert-manager's controller."""
    return {
        "apiVersion": "controller.config.cert-manager.io/v1alpha1",
        "kind": "ControllerConfiguration",
        "kubeConfig": str(component_kubeconfig(layout, CERT_MANAGER)),
        "clusterResourceNamespace": NAMESPACE,
        "leaderElectionConfig": {"enabled": False},  # there is only one; it would wait for the old lease to expire
        "metricsListenAddress": "0",
        "healthzListenAddress": f"{layout.node_address}:{_CONTROLLER_HEALTH_PORT}",
    }


def webhook_config(layout: Layout) -> dict[str, Any]:
    """Return the configuration of cert-manager's webhook."""
    files = {
        "certFile": str(certificate_path(layout.pki, CERT_MANAGER_WEBHOOK)),
        "keyFile": str(key_path(layout.pki, CERT_MANAGER_WEBHOOK)),
    }
    return {
        "apiVersion": "webhook.config.cert-manager.io/v1alpha1",
        "kind": "WebhookConfiguration",
        "kubeConfig": str(component_kubeconfig(layout, CERT_MANAGER)),
        "securePort": WEBHOOK_PORT,
        "healthzPort": _WEBHOOK_HEALTH_PORT,
        "metricsListenAddress": "0",
        "tlsConfig": {"filesystem": files},
    }
