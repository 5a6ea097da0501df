"""Rules about what reaches a pod from outside of the cluster. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.policy.route_rules import own_routes
from reside.policy.shapes import mapping, mappings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.policy.context import Context
    from reside.policy.shapes import Manifest

DOMAIN_CERTIFICATE: Final = "jazz-tls"
"""The same name as in `reside.model.constants`."""
_ISSUING: Final = ("cert-manager.io/", "acme.cert-manager.io/", "kubernetes.io/tls-acme")
"""Beginnings of the names of annotations that cert-manager reads."""
_PATHS: Final = "/replicas/"
_PATH_TYPES: Final = ("Prefix", "Exact")


def internal_services(manifest: Manifest, _: Context) -> Iterator[str]:
    """Allow only Services with addresses inside of the cluster."""
    if manifest.get("kind") != "Service":
        return
    spec = mapping(manifest, "spec")
    if spec.get("type", "ClusterIP") != "ClusterIP":
        yield f"type {spec['type']} opens the Service to the outside, or names a foreign host: use ClusterIP"
    for member in ("externalIPs", "externalName", "loadBalancerIP", "healthCheckNodePort"):
        if spec.get(member):
            yield f"{member} is set: remove it, and use an Ingress"
    if any(port.get("nodePort") for port in mappings(spec, "ports")):
        yield "a port has a nodePort: remove it"


def own_paths(manifest: Manifest, context: Context) -> Iterator[str]:
    """Let an Ingress or HTTPRoute serve only paths below `/replicas/<stack>/`, by what its own stack has.

    The platform's own Ingress serves Jazz at `/`. All Ingresses may use its certificate, which is that of the domain.
    """
    if context.stack is None or context.is_platform:
        return
    if manifest.get("kind") == "HTTPRoute":
        yield from own_routes(manifest, context)
    if manifest.get("kind") != "Ingress":
        return
    spec = mapping(manifest, "spec")
    if spec.get("defaultBackend") is not None:
        yield "defaultBackend serves every path: remove it"
    for rule in mappings(spec, "rules"):
        for path in mappings(mapping(rule, "http"), "paths"):
            yield from _path(path, context)
    for entry in mappings(spec, "tls"):
        yield from _certificate(entry.get("secretName"), manifest, context)
    for annotation in mapping(manifest, "metadata", "annotations"):
        if "snippet" in str(annotation):
            yield f"annotation {annotation} changes the controller's configuration: remove it"


def _certificate(name: object, manifest: Manifest, context: Context) -> Iterator[str]:
    """Let an Ingress use the domain's certificate, which cert-manager makes for the platform's Ingress alone."""
    if name == DOMAIN_CERTIFICATE:
        for annotation in mapping(manifest, "metadata", "annotations"):
            if str(annotation).startswith(_ISSUING):
                yield f"annotation {annotation} would make the certificate {name} this stack's: remove it"
    elif name not in (None, f"{context.stack}-tls") and f"Secret/{name}" not in context.own:
        yield f"tls uses Secret {name}, which is not in this stack: use {DOMAIN_CERTIFICATE} or {context.stack}-tls"


def _path(path: Manifest, context: Context) -> Iterator[str]:
    own, where, kind = f"{_PATHS}{context.stack}/", path.get("path"), path.get("pathType")
    if not isinstance(where, str) or not f"{where}/".startswith(own):
        yield f"path {where} is not below {own}: use a path of this stack"
    if kind not in _PATH_TYPES:
        yield f"pathType {kind} lets the controller decide what the path means: use {' or '.join(_PATH_TYPES)}"
    service = mapping(path, "backend", "service").get("name")
    if f"Service/{service}" not in context.own:
        yield f"path {where} is served by Service {service}, which is not in this stack"
