"""The Kubernetes objects that `up` creates in every full cluster: DNS and a StorageClass.

`objects` is pure. `Api.apply` writes each object with server-side apply, which is idempotent.
"""

from dataclasses import dataclass
from typing import Any

from reside.local import node_controller
from reside.local.layout import CLUSTER_DOMAIN, REGISTRY_HOST, Layout
from reside.local.volumes import PROVISIONER, STORAGE_CLASS, USER

DNS_PORT = 5353  # not 53: the pod needs neither root nor a capability
DNS_COPIES = 2
"""Number of CoreDNS pods in a cluster with several nodes, so that names are resolved when a node has ended."""
DNS_LABELS = {"k8s-app": "kube-dns"}


@dataclass(frozen=True)
class ApiObject:
    """A Kubernetes object and its path in the API.

    Args:
        path: path of the object in the API.
        body: the object.
    """

    path: str
    body: dict[str, Any]


def objects(layout: Layout, dns_image: str, *, forwards: bool) -> list[ApiObject]:
    """Return the objects of a full cluster.

    Args:
        layout: layout of the local cluster.
        dns_image: image of CoreDNS, which the node has already.
        forwards: whether CoreDNS forwards queries for names outside the cluster to the machine's resolvers.
    """
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    system = "/api/v1/namespaces/kube-system"
    return [
        ApiObject(f"/apis/storage.k8s.io/v1/storageclasses/{STORAGE_CLASS}", _storage_class()),
        ApiObject(f"{rbac}/clusterrolebindings/{USER}", _binding(USER, "system:persistent-volume-provisioner")),
        *(_node_controller_access(rbac) if layout.nodes > 1 else ()),
        ApiObject(f"{system}/serviceaccounts/coredns", _object("v1", "ServiceAccount", "coredns")),
        ApiObject(f"{rbac}/clusterroles/system:coredns", _dns_role()),
        ApiObject(f"{rbac}/clusterrolebindings/system:coredns", _dns_role_binding()),
        ApiObject(f"{system}/configmaps/coredns", _dns_config(layout, forwards=forwards)),
        ApiObject(f"{system}/services/kube-dns", _dns_service(layout)),
        ApiObject(
            "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
            _dns_deployment(dns_image, layout),
        ),
    ]


def _object(api_version: str, kind: str, name: str, *, namespaced: bool = True, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": "kube-system"} if namespaced else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


def _storage_class() -> dict[str, Any]:
    storage_class = _object(
        "storage.k8s.io/v1",
        "StorageClass",
        STORAGE_CLASS,
        namespaced=False,
        provisioner=PROVISIONER,
        reclaimPolicy="Delete",
        volumeBindingMode="Immediate",
    )
    storage_class["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return storage_class


def _binding(user: str, role: str) -> dict[str, Any]:
    """Return the ClusterRoleBinding, named after a user, that grants a ClusterRole."""
    group = "rbac.authorization.k8s.io"
    return _object(
        f"{group}/v1",
        "ClusterRoleBinding",
        user,
        namespaced=False,
        roleRef={"apiGroup": group, "kind": "ClusterRole", "name": role},
        subjects=[{"apiGroup": group, "kind": "User", "name": user}],
    )


def _node_controller_access(rbac: str) -> list[ApiObject]:
    name = node_controller.USER
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]}]
    role = _object("rbac.authorization.k8s.io/v1", "ClusterRole", name, namespaced=False, rules=rules)
    return [
        ApiObject(f"{rbac}/clusterroles/{name}", role),
        ApiObject(f"{rbac}/clusterrolebindings/{name}", _binding(name, name)),
    ]


def _dns_role() -> dict[str, Any]:
    read = ["list", "watch"]
    return _object(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "system:coredns",
        namespaced=False,
        rules=[
            {"apiGroups": [""], "resources": ["endpoints", "services", "pods", "namespaces"], "verbs": read},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
        ],
    )


def _dns_role_binding() -> dict[str, Any]:
    return _object(
        "rbac.authorization.k8s.io/v1",
        "ClusterRoleBinding",
        "system:coredns",
        namespaced=False,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
        subjects=[{"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}],
    )


def corefile(layout: Layout, *, forwards: bool) -> str:
    """Return CoreDNS's configuration. Names outside the cluster are resolved only with `forwards`."""
    forward = "    forward . /etc/resolv.conf\n" if forwards else ""
    return f""".:{DNS_PORT} {{
    errors
    health :8080 {{
        lameduck 1s
    }}
    ready :8181
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 5
    }}
    hosts {{
        {layout.host_address} {REGISTRY_HOST}
        fallthrough
    }}
{forward}    cache 5
    reload
}}
"""


def _dns_config(layout: Layout, *, forwards: bool) -> dict[str, Any]:
    return _object("v1", "ConfigMap", "coredns", data={"Corefile": corefile(layout, forwards=forwards)})


def _dns_service(layout: Layout) -> dict[str, Any]:
    ports = [
        {"name": name, "port": 53, "targetPort": DNS_PORT, "protocol": protocol}
        for name, protocol in (("dns", "UDP"), ("dns-tcp", "TCP"))
    ]
    spec = {"clusterIP": layout.dns_address, "selector": DNS_LABELS, "ports": ports}
    return _object("v1", "Service", "kube-dns", spec=spec)


def _dns_deployment(image: str, layout: Layout) -> dict[str, Any]:
    container = {
        "name": "coredns",
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"name": "dns", "containerPort": DNS_PORT, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": DNS_PORT, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "failureThreshold": 5},
        "resources": {"requests": {"cpu": "50m", "memory": "50Mi"}, "limits": {"memory": "170Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65534,
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    copies = min(layout.nodes, DNS_COPIES)
    pod: dict[str, Any] = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    if copies > 1:
        apart = {"labelSelector": {"matchLabels": DNS_LABELS}, "topologyKey": "kubernetes.io/hostname"}
        preferred = [{"weight": 100, "podAffinityTerm": apart}]
        pod["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    spec = {
        "replicas": copies,
        "selector": {"matchLabels": DNS_LABELS},
        "template": {"metadata": {"labels": DNS_LABELS}, "spec": pod},
    }
    return _object("apps/v1", "Deployment", "coredns", spec=spec)
