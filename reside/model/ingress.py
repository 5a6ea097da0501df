"""The Ingresses of a cluster, which share its domain. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reside.model.constants import DOMAIN_CERTIFICATE

if TYPE_CHECKING:
    from reside.model.cluster import ClusterSettings

_ISSUER_ANNOTATION: Final = "cert-manager.io/cluster-issuer"
_ISSUING: Final = ("cert-manager.io/", "acme.cert-manager.io/", "kubernetes.io/tls-acme")
"""Beginnings of the names of annotations that cert-manager reads."""


def domain_ingress(
    metadata: dict[str, Any], cluster: ClusterSettings, path: dict[str, Any], *, issues: bool = False
) -> dict[str, Any]:
    """Return an Ingress that serves one path of the domain.

    All Ingresses of a domain use one certificate, because certificate authorities limit how many they sign for the same
    name. cert-manager makes it for one of them, and refuses to make it for a second one.

    Args:
        metadata: metadata of the Ingress.
        cluster: the settings of the cluster, which has a domain.
        path: the path with its type and its backend.
        issues: whether cert-manager makes the certificate for this Ingress.
    """
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


def controller_peer(cluster: ClusterSettings) -> dict[str, Any]:
    """Return the peer of a NetworkPolicy that is the ingress controller: its namespace, or every other one."""
    names = [cluster.ingress_namespace or cluster.namespace]
    operator = "In" if cluster.ingress_namespace else "NotIn"
    label = {"key": "kubernetes.io/metadata.name", "operator": operator, "values": names}
    return {"namespaceSelector": {"matchExpressions": [label]}}
