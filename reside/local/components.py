"""The control plane as data: what each component is started with, and when it is healthy.

Pure: nothing here starts a process. `node` has the components of a node.
"""

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reside.local.kubeconfigs import component_kubeconfig
from reside.local.layout import CLUSTER_DOMAIN, Layout
from reside.local.pki import ETCD_CA, KUBERNETES_CA, SERVICE_ACCOUNT_KEY, certificate_path, key_path

ISSUER = f"https://kubernetes.default.svc.{CLUSTER_DOMAIN}"
FEATURE_GATES = "DeploymentReplicaSetTerminatingReplicas=true"
"""Deployments tell of pods on their way out, which a replica that must stop first is waited for by; on from 1.35."""
_DOCUMENTATION_ADDRESS = "192.0.2.1"  # RFC 5737: belongs to nobody


@dataclass(frozen=True)
class HttpHealth:
    """Healthy when the URL answers 200.

    Args:
        url: What is asked.
        ca: The authority of an https server.
        certificate: The client certificate to show.
        key: Its key.
    """

    url: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class SocketHealth:
    """Healthy when a unix socket accepts a connection."""

    path: Path


Health = HttpHealth | SocketHealth


@dataclass(frozen=True)
class Component:
    """One process of an instance.

    Args:
        name: Its name in statuses and logs.
        argv: Binary and arguments.
        health: How to tell that it is ready.
        needs: Components that must be healthy before it is started.
        env: Environment beside PATH and the instance's mark.
        in_node: Whether it runs in the namespaces of the instance's node.
    """

    name: str
    argv: tuple[str, ...]
    health: Health
    needs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    in_node: bool = True


Find = Callable[[str], Path]
"""From a binary's name to its path."""

CONTROL_PLANE_TOOLS = ("etcd", "kube-apiserver", "kube-controller-manager")


def flags(options: Mapping[str, object]) -> list[str]:
    """Turn options into `--name=value` arguments."""
    return [f"--{name}={value}" for name, value in options.items()]


def control_plane(layout: Layout, find: Find) -> list[Component]:
    """Return etcd, the API server and the controller-manager of an instance."""
    return [_etcd(layout, find), _api_server(layout, find), _controller_manager(layout, find)]


def own_address() -> str:
    """Return an address of this machine that is not loopback, which the API server insists on advertising.

    Nothing is sent: connecting a datagram socket only asks the routing table.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_DOCUMENTATION_ADDRESS, 9))
        except OSError:
            return _DOCUMENTATION_ADDRESS  # no network at all: nobody uses the address then
        return str(probe.getsockname()[0])


def _etcd(layout: Layout, find: Find) -> Component:
    pki = layout.pki
    client = f"https://{layout.node_address}:{layout.etcd_port}"
    peer = f"https://127.0.0.1:{layout.etcd_peer_port}"  # there are no peers; strangers are kept out all the same
    options: dict[str, object] = {
        "name": "reside",
        "data-dir": layout.state / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"reside={peer}",
        "client-cert-auth": "true",
        "trusted-ca-file": certificate_path(pki, ETCD_CA),
        "cert-file": certificate_path(pki, "etcd"),
        "key-file": key_path(pki, "etcd"),
        "peer-client-cert-auth": "true",
        "peer-trusted-ca-file": certificate_path(pki, ETCD_CA),
        "peer-cert-file": certificate_path(pki, "etcd"),
        "peer-key-file": key_path(pki, "etcd"),
        "auto-compaction-retention": "1h",
        "log-level": "warn",
    }
    if layout.control_plane_only:
        options["unsafe-no-fsync"] = "true"  # tests only: fsync costs more than everything else together
    health = HttpHealth(
        f"{client}/health",
        certificate_path(pki, ETCD_CA),
        certificate_path(pki, "etcd-client"),
        key_path(pki, "etcd-client"),
    )
    return Component("etcd", (str(find("etcd")), *flags(options)), health)


def _api_server(layout: Layout, find: Find) -> Component:
    pki = layout.pki
    advertised = own_address() if layout.control_plane_only else layout.node_address
    options: dict[str, object] = {
        "etcd-servers": f"https://{layout.node_address}:{layout.etcd_port}",
        "etcd-cafile": certificate_path(pki, ETCD_CA),
        "etcd-certfile": certificate_path(pki, "etcd-client"),
        "etcd-keyfile": key_path(pki, "etcd-client"),
        "bind-address": layout.node_address,
        "secure-port": layout.api_port,
        "advertise-address": advertised,
        "service-cluster-ip-range": layout.service_range,
        "authorization-mode": "Node,RBAC",
        "anonymous-auth": "false",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "feature-gates": FEATURE_GATES,
        "client-ca-file": certificate_path(pki, KUBERNETES_CA),
        "tls-cert-file": certificate_path(pki, "kube-apiserver"),
        "tls-private-key-file": key_path(pki, "kube-apiserver"),
        "service-account-issuer": ISSUER,
        "service-account-key-file": pki / f"{SERVICE_ACCOUNT_KEY}.pub",
        "service-account-signing-key-file": key_path(pki, SERVICE_ACCOUNT_KEY),
        "kubelet-certificate-authority": certificate_path(pki, KUBERNETES_CA),
        "kubelet-client-certificate": certificate_path(pki, "kubelet-client"),
        "kubelet-client-key": key_path(pki, "kubelet-client"),
        "kubelet-preferred-address-types": "InternalIP",  # the node's name is in no DNS
    }
    health = HttpHealth(
        f"{layout.api_url}/readyz",
        certificate_path(pki, KUBERNETES_CA),
        certificate_path(pki, "admin"),
        key_path(pki, "admin"),
    )
    return Component("kube-apiserver", (str(find("kube-apiserver")), *flags(options)), health, ("etcd",))


def _controller_manager(layout: Layout, find: Find) -> Component:
    pki = layout.pki
    options: dict[str, object] = {
        **serving(layout, "kube-controller-manager"),
        "secure-port": layout.controller_manager_port,
        "service-account-private-key-file": key_path(pki, SERVICE_ACCOUNT_KEY),
        "root-ca-file": certificate_path(pki, KUBERNETES_CA),
        "cluster-signing-cert-file": certificate_path(pki, KUBERNETES_CA),
        "cluster-signing-key-file": key_path(pki, KUBERNETES_CA),
        "use-service-account-credentials": "true",
        # The default of 20 requests a second delays deletions and statuses by seconds
        "kube-api-qps": 1000,
        "kube-api-burst": 2000,
        "feature-gates": FEATURE_GATES,
    }
    health = serving_health(layout, layout.controller_manager_port)
    return Component(
        "kube-controller-manager",
        (str(find("kube-controller-manager")), *flags(options)),
        health,
        ("kube-apiserver",),
    )


def serving(layout: Layout, component: str) -> dict[str, object]:
    """Return the options that controller-manager and scheduler share: who they are and how they serve health."""
    return {
        "kubeconfig": component_kubeconfig(layout, component),
        "bind-address": layout.node_address,
        "tls-cert-file": certificate_path(layout.pki, component),
        "tls-private-key-file": key_path(layout.pki, component),
        "leader-elect": "false",  # there is one of each: a successor need not wait for a dead leader's lease
    }


def serving_health(layout: Layout, port: int) -> HttpHealth:
    """Return the health check of a component with `serving` options."""
    return HttpHealth(f"https://{layout.node_address}:{port}/healthz", certificate_path(layout.pki, KUBERNETES_CA))


def stop_order(running: Sequence[str]) -> list[list[str]]:
    """Return which components to stop together, one group after the other: who serves others stops after them."""
    last = ["kube-apiserver", "etcd"]
    groups = [[name for name in running if name not in last], *([name] for name in last if name in running)]
    return [group for group in groups if group]


def names(components: Sequence[Component]) -> list[str]:
    """Return the components' names."""
    return [component.name for component in components]
