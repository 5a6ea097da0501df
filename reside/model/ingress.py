"""The Ingresses or HTTPRoutes of a cluster, which share its domain. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reside.model.constants import DOMAIN_CERTIFICATE

if TYPE_CHECKING:
    from reside.model.cluster import ClusterSettings

_ISSUER_ANNOTATION: Final = "cert-manager.io/cluster-issuer"
_GATEWAY_GROUP: Final = "gateway.networking.k8s.io"
_ISSUING: Final = ("cert-manager.io/", "acme.cert-manager.io/", "kubernetes.io/tls-acme")
"""Beginnings of the names of annotations that cert-manager reads."""


def domain_ingress(
    metadata: dict[str, Any], cluster: ClusterSettings, path: dict[str, Any], *, issues: bool = False
) -> dict[str, Any]:
    """Return the object that serves one path of the domain: an Ingress, or an HTTPRoute of the cluster's gateway.

    All Ingresses of a domain use one certificate, because certificate authorities limit how many they sign for the same
    name. cert-manager makes it for one of them, and refuses to make it for a second one. A gateway has its own.

    Args:
        metadata: metadata of the object.
        cluster: the settings of the cluster, which has a domain.
        path: the path with its type and its backend, as in an Ingress.
        issues: whether cert-manager makes the certificate for this Ingress.
    """
    if cluster.gateway:
        return _route(metadata, cluster.gateway, str(cluster.domain), path)
    spec: dict[str, Any] = {"rules": [{"host": cluster.domain, "http": {"paths": [path]}}]}
    if cluster.ingress_class:
        spec["ingressClassName"] = cluster.ingress_class
    annotations = {
        name: value for name, value in cluster.ingress_annotations.items() if issues or not name.startswith(_ISSUING)
    }
    if cluster.cluster_issuer:
        spec["tls"] = [{"hosts": [cluster.domain], "secretName": DOMAIN_CERTIFICATE}]
        if issues:
            annotations[_ISSUER_ANNOTATION] = cluster.cluster_issuer
    meta = {**metadata, "annotations": annotations} if annotations else metadata
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": spec}


def _route(metadata: dict[str, Any], gateway: str, domain: str, path: dict[str, Any]) -> dict[str, Any]:
    """Return an HTTPRoute.

    It contains every default of its definition: what the API server adds to a list would be drift.
    """
    namespace, name, *listener = gateway.split("/")
    parent = {"group": _GATEWAY_GROUP, "kind": "Gateway", "namespace": namespace, "name": name}
    if listener:
        parent["sectionName"] = listener[0]
    service = path["backend"]["service"]
    backend = {"group": "", "kind": "Service", "name": service["name"], "port": service["port"]["number"], "weight": 1}
    match = {"type": "PathPrefix" if path["pathType"] == "Prefix" else "Exact", "value": path["path"]}
    return {
        "apiVersion": f"{_GATEWAY_GROUP}/v1",
        "kind": "HTTPRoute",
        "metadata": metadata,
        "spec": {
            "parentRefs": [parent],
            "hostnames": [domain],
            "rules": [{"matches": [{"path": match}], "backendRefs": [backend]}],
        },
    }


def controller_peer(cluster: ClusterSettings) -> dict[str, Any]:
    """Return the peer of a NetworkPolicy that is the ingress controller: its namespace, or every other one."""
    names = [cluster.ingress_namespace or cluster.namespace]
    operator = "In" if cluster.ingress_namespace else "NotIn"
    label = {"key": "kubernetes.io/metadata.name", "operator": operator, "values": names}
    return {"namespaceSelector": {"matchExpressions": [label]}}
