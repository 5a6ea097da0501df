"""Definitions of the components of nodes, with their configuration files.

Each node has a containerd, a kubelet and a kube-proxy; the scheduler is on the first node. Nothing here starts a
process or writes a file. The image registry runs outside of the nodes' namespaces, because tools on the machine push to
it over loopback. It has two processes, one for each address that it listens on, with one store. The volume provisioner
and, with several nodes, the node controller run outside as well.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from reside.local.components import (
    CONTROL_PLANE_TOOLS,
    NODE_LEASE_SECONDS,
    Component,
    Find,
    HttpHealth,
    SocketHealth,
    flags,
    serving,
    serving_health,
)
from reside.local.kubeconfigs import component_kubeconfig
from reside.local.layout import CLUSTER_DOMAIN, REGISTRY_HOST, Layout
from reside.local.node_layout import NodeLayout, nodes
from reside.local.pki import KUBERNETES_CA, NODE_CONTROLLER, VOLUME_PROVISIONER, certificate_path, key_path

PAUSE_IMAGE = f"{REGISTRY_HOST}/pause:1"
CNI_PLUGINS = Path("/usr/lib/cni")
NODE_TOOLS = (
    *CONTROL_PLANE_TOOLS,
    "kube-scheduler",
    "kubelet",
    "kube-proxy",
    "coredns",
    "pause",
    "containerd",
    "containerd-shim-runc-v2",
    "ctr",
    "runc",
    "docker-registry",
    "iptables",
    "conntrack",
    "ip",
    "mount",
    "nsenter",
    "unshare",
)
SCHEDULER_PORT = 10259
KUBELET_HEALTH_PORT = 10248
PROXY_HEALTH_PORT = 10256
_API_SERVER = ("kube-apiserver",)


def node(layout: Layout, find: Find) -> list[Component]:
    """Return the components that a full cluster has in addition to the control plane."""
    return [
        *(_registry(layout, find, name, address) for name, address in _registries(layout).items()),
        Component(
            "kube-scheduler",
            (
                str(find("kube-scheduler")),
                *flags({**serving(layout, "kube-scheduler"), "secure-port": SCHEDULER_PORT}),
            ),
            serving_health(layout, SCHEDULER_PORT),
            _API_SERVER,
        ),
        *(component for each in nodes(layout) for component in _node(each, find)),
    ]


def _node(node: NodeLayout, find: Find) -> list[Component]:
    """Return containerd, kubelet and kube-proxy of one node."""
    kubelet = {
        "config": node.config / "kubelet.yaml",
        "kubeconfig": component_kubeconfig(node.cluster, node.component("kubelet")),
        "root-dir": node.kubelet_root,
        "node-ip": node.address,
        "hostname-override": node.name,
    }
    return [
        Component(
            node.component("containerd"),
            (str(find("containerd")), "--config", str(node.config / "containerd.toml")),
            SocketHealth(node.containerd_socket),
            node=node.number,
        ),
        Component(
            node.component("kubelet"),
            (str(find("kubelet")), *flags(kubelet)),
            HttpHealth(f"http://{node.address}:{KUBELET_HEALTH_PORT}/healthz"),
            ("kube-apiserver", node.component("containerd")),
            node=node.number,
            config=_yaml(kubelet_config(node)),
        ),
        Component(
            node.component("kube-proxy"),
            (str(find("kube-proxy")), *flags({"config": node.config / "kube-proxy.yaml"})),
            HttpHealth(f"http://{node.address}:{PROXY_HEALTH_PORT}/livez"),
            _API_SERVER,
            node=node.number,
        ),
    ]


def after_objects(layout: Layout) -> list[Component]:
    """Return the components that start after the objects of `addons`, which contain their role."""
    volumes = {"folder": layout.state / "volumes", "socket": layout.runtime / "volumes.sock"}
    provisioner = _own_component(layout, VOLUME_PROVISIONER, "provision", volumes)
    if layout.nodes == 1:
        return [provisioner]
    options = {"state": layout.state, "socket": layout.runtime / "nodes.sock"}
    return [provisioner, _own_component(layout, NODE_CONTROLLER, "control_nodes", options)]


def _own_component(layout: Layout, name: str, module: str, more: dict[str, Path]) -> Component:
    """Return a component that is a module of this package and a client of the API server."""
    options = {
        "server": layout.api_url,
        "ca": certificate_path(layout.pki, KUBERNETES_CA),
        "certificate": certificate_path(layout.pki, name),
        "key": key_path(layout.pki, name),
        **more,
    }
    argv = (sys.executable, "-m", f"reside.local.{module}", *flags(options))
    return Component(name, argv, SocketHealth(more["socket"]), _API_SERVER, node=None)


def _registries(layout: Layout) -> dict[str, str]:
    """Return the address on which each process of the registry listens."""
    return {"registry-loopback": "127.0.0.1", "registry-bridge": layout.host_address}


def _registry(layout: Layout, find: Find, name: str, address: str) -> Component:
    return Component(
        name,
        (str(find("docker-registry")), "serve", str(layout.config / f"{name}.yaml")),
        HttpHealth(f"http://{address}:{layout.registry_loopback_port}/v2/"),
        node=None,
    )


def config_files(layout: Layout, find: Find, registry_secret: str, nameservers: list[str]) -> Mapping[Path, str]:
    """Return every configuration file with its content.

    Args:
        layout: layout of the local cluster.
        find: returns the path of a binary.
        registry_secret: key that signs the registry's upload sessions; both of its processes must accept them.
        nameservers: resolvers of the machine, for names outside the cluster.
    """
    found = {path: text for each in nodes(layout) for path, text in _node_files(each, find, nameservers).items()}
    for name, address in _registries(layout).items():
        found[layout.config / f"{name}.yaml"] = _yaml(registry_config(layout, address, registry_secret))
    return found


def _node_files(node: NodeLayout, find: Find, nameservers: list[str]) -> Mapping[Path, str]:
    """Return the configuration files of one node."""
    config = node.config
    return {
        config / "containerd.toml": containerd_config(node, find("runc")),
        config / "registries" / REGISTRY_HOST / "hosts.toml": registry_hosts(node.cluster),
        config / "cni" / "10-reside.conflist": json.dumps(cni_config(node), indent=2),
        config / "kubelet.yaml": _yaml(kubelet_config(node)),
        config / "kube-proxy.yaml": _yaml(proxy_config(node)),
        config / "resolv.conf": "".join(f"nameserver {server}\n" for server in nameservers),
    }


def containerd_config(node: NodeLayout, runc: Path) -> str:
    """Return containerd's configuration, which shares nothing with another containerd on the machine."""
    runtime = "io.containerd.runc.v2"
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{node.state}/containerd"
state = "{node.runtime}/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = "{node.containerd_socket}"

[{cri}]
sandbox_image = "{PAUSE_IMAGE}"
# Without CAP_SYS_RESOURCE no process may get a lower score than its parent, and no sandbox would start
restrict_oom_score_adj = true
# Pods' network namespaces are in `state`, not in the folder that all containerd processes of the machine share
netns_mounts_under_state_dir = true

[{cri}.containerd]
default_runtime_name = "runc"

[{cri}.containerd.runtimes.runc]
runtime_type = "{runtime}"

[{cri}.containerd.runtimes.runc.options]
BinaryName = "{runc}"
SystemdCgroup = false

[{cri}.cni]
bin_dir = "{CNI_PLUGINS}"
conf_dir = "{node.config}/cni"

[{cri}.registry]
config_path = "{node.config}/registries"
"""


def registry_hosts(layout: Layout) -> str:
    """Return containerd's mapping from the registry's name to its plain HTTP address on this machine."""
    address = f"http://{layout.host_address}:{layout.registry_bridge_port}"
    return f"""server = "{address}"

[host."{address}"]
capabilities = ["pull", "resolve"]
"""


def cni_config(node: NodeLayout) -> dict[str, Any]:
    """Return the configuration of the pods' network: a routed pair of interfaces for each pod.

    It is not a bridge: between two pods on a bridge, responses of a Service bypass the address translation, unless the
    kernel passes bridged packets to the packet filter. Not every machine's kernel does.
    """
    return {
        "cniVersion": "0.4.0",
        "name": "reside",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": False,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/var/lib/cni/networks",
                    "ranges": [[{"subnet": node.pod_range, "gateway": node.pod_gateway}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def kubelet_config(node: NodeLayout) -> dict[str, Any]:
    """Return the kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address,
        "healthzBindAddress": node.address,
        "healthzPort": KUBELET_HEALTH_PORT,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(certificate_path(node.cluster.pki, KUBERNETES_CA))},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificate_path(node.cluster.pki, node.component("kubelet"))),
        "tlsPrivateKeyFile": str(key_path(node.cluster.pki, node.component("kubelet"))),
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "clusterDNS": [node.cluster.dns_address],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(node.config / "resolv.conf"),
        "failSwapOn": False,
        "oomScoreAdj": 0,  # a lower score requires CAP_SYS_RESOURCE
        "podLogsDir": str(node.state / "pod-logs"),
        "volumePluginDir": str(node.state / "volume-plugins"),
        "serializeImagePulls": False,
        **({"nodeLeaseDurationSeconds": NODE_LEASE_SECONDS} if node.cluster.nodes > 1 else {}),
        # Do not delete unused images: a user's disk is often nearly full, and these images can't be pulled again
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
    }


def proxy_config(node: NodeLayout) -> dict[str, Any]:
    """Return kube-proxy's configuration."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": str(component_kubeconfig(node.cluster, "kube-proxy"))},
        "clusterCIDR": node.pod_range,
        "hostnameOverride": node.name,
        "bindAddress": node.address,
        "healthzBindAddress": f"{node.address}:{PROXY_HEALTH_PORT}",
        "metricsBindAddress": "127.0.0.1:10249",
        "oomScoreAdj": 0,
        "iptables": {"minSyncPeriod": "100ms"},  # there are few Services, so frequent syncs are cheap
        # The limits apply to the whole machine and can't be set in a network namespace
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
    }


def registry_config(layout: Layout, address: str, secret: str) -> dict[str, Any]:
    """Return the configuration of one of the registry's processes; without a cache, because both write."""
    return {
        "version": "0.1",
        "log": {"level": "warn", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(layout.state / "registry")},
            "delete": {"enabled": True},
        },
        "http": {"addr": f"{address}:{layout.registry_loopback_port}", "secret": secret, "relativeurls": True},
    }


def _yaml(document: dict[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False))
