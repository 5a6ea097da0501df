"""The Ingresses of a cluster, which share its domain. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reside.model.cluster import ClusterSettings

_ISSUER_ANNOTATION = "cert-manager.io/cluster-issuer"


def domain_ingress(metadata: dict[str, Any], cluster: ClusterSettings, path: dict[str, Any]) -> dict[str, Any]:
    """Return an Ingress that serves one path of the domain, with a certificate that no other Ingress uses.

    Args:
        metadata: metadata of the Ingress.
        cluster: the settings of the cluster, which has a domain.
        path: the path with its type and its backend.
    """
    spec: dict[str, Any] = {"rules": [{"host": cluster.domain, "http": {"paths": [path]}}]}
    if cluster.ingress_class:
        spec["ingressClassName"] = cluster.ingress_class
    annotations = dict(cluster.ingress_annotations)
    if cluster.cluster_issuer:
        annotations[_ISSUER_ANNOTATION] = cluster.cluster_issuer
        spec["tls"] = [{"hosts": [cluster.domain], "secretName": f"{metadata['name']}-tls"}]
    meta = {**metadata, "annotations": annotations} if annotations else metadata
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": meta, "spec": spec}


def controller_peer(cluster: ClusterSettings) -> dict[str, Any]:
    """Return the peer of a NetworkPolicy that is the ingress controller: its namespace, or every other one."""
    names = [cluster.ingress_namespace or cluster.namespace]
    operator = "In" if cluster.ingress_namespace else "NotIn"
    label = {"key": "kubernetes.io/metadata.name", "operator": operator, "values": names}
    return {"namespaceSelector": {"matchExpressions": [label]}}
