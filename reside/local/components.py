"""Definitions of the components of the control plane: command, health check and dependencies of each.

Nothing here starts a process or writes a file. `node` defines the components of a node.
"""

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reside.local.kubeconfigs import component_kubeconfig
from reside.local.layout import CLUSTER_DOMAIN, Layout
from reside.local.pki import ETCD_CA, KUBERNETES_CA, SERVICE_ACCOUNT_KEY, certificate_path, key_path

ISSUER = f"https://kubernetes.default.svc.{CLUSTER_DOMAIN}"
NODE_GRACE = "20s"
"""With several nodes: time without a sign of life of a kubelet until its node is not ready (Kubernetes: 50 s)."""
NODE_LEASE_SECONDS = 10
"""With several nodes: a kubelet gives a sign of life after each quarter of this (Kubernetes: 40 s)."""
_DOCUMENTATION_ADDRESS = "192.0.2.1"  # RFC 5737: reserved for documentation


@dataclass(frozen=True)
class HttpHealth:
    """Healthy if a GET of the URL returns 200.

    Args:
        url: URL of the health endpoint.
        ca: certificate of the CA of an https server.
        certificate: client certificate.
        key: key of the client certificate.
    """

    url: str
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True)
class SocketHealth:
    """Healthy if a Unix socket accepts a connection."""

    path: Path


Health = HttpHealth | SocketHealth


@dataclass(frozen=True)
class Component:
    """One process of a local cluster.

    Args:
        name: name in statuses and logs.
        argv: binary and arguments.
        health: health check.
        needs: names of the components that must be healthy before this one is started.
        env: environment in addition to PATH and `MARK` (see `processes`).
        node: number of the node in whose namespaces it runs; None: outside of them.
        config: content of its configuration file, if it must be restarted when it changes.
    """

    name: str
    argv: tuple[str, ...]
    health: Health
    needs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    node: int | None = 1
    config: str = ""


Find = Callable[[str], Path]
"""Returns the path of a binary with this name."""

CONTROL_PLANE_TOOLS = ("etcd", "kube-apiserver", "kube-controller-manager")


def flags(options: Mapping[str, object]) -> list[str]:
    """Turn options into `--name=value` arguments."""
    return [f"--{name}={value}" for name, value in options.items()]


def control_plane(layout: Layout, find: Find) -> list[Component]:
    """Return etcd, the API server and the controller-manager of a local cluster."""
    return [_etcd(layout, find), _api_server(layout, find), _controller_manager(layout, find)]


def own_address() -> str:
    """Return an address of this machine that is not loopback: the API server refuses to advertise a loopback address.

    Nothing is sent: connecting a datagram socket only looks up a route.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((_DOCUMENTATION_ADDRESS, 9))
        except OSError:
            return _DOCUMENTATION_ADDRESS  # no network at all: the address is not used
        return str(probe.getsockname()[0])


def _etcd(layout: Layout, find: Find) -> Component:
    pki = layout.pki
    client = f"https://{layout.node_address}:{layout.etcd_port}"
    peer = f"https://127.0.0.1:{layout.etcd_peer_port}"  # there are no peers, but TLS still refuses other clients
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
        options["unsafe-no-fsync"] = "true"  # for tests: fsync takes longer than everything else
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
        "client-ca-file": certificate_path(pki, KUBERNETES_CA),
        "tls-cert-file": certificate_path(pki, "kube-apiserver"),
        "tls-private-key-file": key_path(pki, "kube-apiserver"),
        "service-account-issuer": ISSUER,
        "service-account-key-file": pki / f"{SERVICE_ACCOUNT_KEY}.pub",
        "service-account-signing-key-file": key_path(pki, SERVICE_ACCOUNT_KEY),
        "kubelet-certificate-authority": certificate_path(pki, KUBERNETES_CA),
        "kubelet-client-certificate": certificate_path(pki, "kubelet-client"),
        "kubelet-client-key": key_path(pki, "kubelet-client"),
        "kubelet-preferred-address-types": "InternalIP",  # DNS does not resolve the node's name
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
    several = {"node-monitor-grace-period": NODE_GRACE} if layout.nodes > 1 else {}
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
        **several,
    }
    health = serving_health(layout, layout.controller_manager_port)
    return Component(
        "kube-controller-manager",
        (str(find("kube-controller-manager")), *flags(options)),
        health,
        ("kube-apiserver",),
    )


def serving(layout: Layout, component: str) -> dict[str, object]:
    """Return the options that controller-manager and scheduler share: identity, health endpoint, leader election."""
    return {
        "kubeconfig": component_kubeconfig(layout, component),
        "bind-address": layout.node_address,
        "tls-cert-file": certificate_path(layout.pki, component),
        "tls-private-key-file": key_path(layout.pki, component),
        "leader-elect": "false",  # there is only one of each; after a restart it would wait for the old lease to expire
    }


def serving_health(layout: Layout, port: int) -> HttpHealth:
    """Return the health check of a component with `serving` options."""
    return HttpHealth(f"https://{layout.node_address}:{port}/healthz", certificate_path(layout.pki, KUBERNETES_CA))


def stop_order(running: Sequence[str]) -> list[list[str]]:
    """Return groups of components to stop one after the other: a server stops after its clients."""
    last = ["kube-apiserver", "etcd"]
    groups = [[name for name in running if name not in last], *([name] for name in last if name in running)]
    return [group for group in groups if group]


def names(components: Sequence[Component]) -> list[str]:
    """Return the components' names."""
    return [component.name for component in components]
