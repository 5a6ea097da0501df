"""Rules about the stack of an object: it uses, names and grants only what belongs to this stack. Pure.

The Sentinel may read and write everything in the namespace, and so may everybody who is allowed to declare pods that
use any ServiceAccount or Secret. These rules make a right to declare objects of a kind a right to one's own objects.
They are not checked for an object without a stack (`Context.stack` is None), such as one of the bootstrap's program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reside.policy.context import PLATFORM_NAMES, Context
from reside.policy.shapes import (
    Manifest,
    claim_specs,
    containers,
    items,
    mapping,
    mappings,
    name_of,
    pod_specs,
    pod_templates,
)

_CERTIFICATES: Final = "-tls"
"""Ending of the names of Secrets into which cert-manager writes the certificates of Ingresses."""
_RESERVED_PREFIX: Final = "reside.io/"
_STACK_LABEL: Final = "reside.io/stack"
_VERSION_OF_PLATFORM: Final = re.compile(r"(alpha|kubernetes-sentinel)-\d+")
_ENGINE_PREFIX: Final = "pulumi.com/"
_SECRET_TYPES: Final = ("kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token")
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_POWERFUL: Final = frozenset(
    {
        "cronjobs",
        "daemonsets",
        "deployments",
        "jobs",
        "pods",
        "replicasets",
        "replicationcontrollers",
        "rolebindings",
        "roles",
        "serviceaccounts",
        "statefulsets",
    }
)
"""Resources whose writers can run pods that use any Secret, or grant rights."""
_DEFAULT_ACCOUNT: Final = "default"


def own_references(manifest: Manifest, context: Context) -> Iterator[str]:
    """Let pods use only ServiceAccounts, Secrets, ConfigMaps and claims of their own stack."""
    if context.stack is None:
        return
    for key in sorted({f"{kind}/{name}" for kind, name in _references(manifest)}):
        if not context.may_use(key) and key != f"ServiceAccount/{_DEFAULT_ACCOUNT}":
            yield f"{key} is used, but is not in this stack: declare it here"
    for spec in claim_specs(manifest):
        if spec.get("volumeName"):
            yield "a claim names a volume: remove volumeName"
        for member in ("dataSource", "dataSourceRef"):
            source = mapping(spec, member)
            if source and not context.may_use(f"{source.get('kind')}/{source.get('name')}"):
                yield f"a claim copies {source.get('kind')} {source.get('name')}: copy a claim of this stack"


def own_roles(manifest: Manifest, context: Context) -> Iterator[str]:
    """Let a RoleBinding bind only a Role of its own stack."""
    role = mapping(manifest, "roleRef")
    if context.stack is None or manifest.get("kind") != "RoleBinding" or role.get("kind") != "Role":
        return
    if not context.may_use(f"Role/{role.get('name')}"):
        yield f"Role {role.get('name')} is bound, but is not in this stack: declare it here"


def narrow_roles(manifest: Manifest, context: Context) -> Iterator[str]:
    """Let a Role give access to named Secrets of its own stack only, and to no way around that."""
    if context.stack is None or context.is_platform or manifest.get("kind") != "Role":
        return
    for rule in mappings(manifest, "rules"):
        resources = {str(resource).partition("/")[0] for resource in items(rule, "resources")}
        if "secrets" in resources:
            names = items(rule, "resourceNames")
            foreign = [name for name in names if not context.may_use(f"Secret/{name}")]
            if not names:
                yield "a rule covers every Secret: name those of this stack in resourceNames"
            elif foreign:
                yield f"a rule covers the Secrets {', '.join(map(str, foreign))}, which are not in this stack"
        written = sorted(_WRITES.intersection(map(str, items(rule, "verbs"))))
        if written and (powerful := sorted(resources & _POWERFUL)):
            yield f"a rule allows to {', '.join(written)} {', '.join(powerful)}, and so to use any Secret: declare them"


def secret_values(manifest: Manifest, context: Context) -> Iterator[str]:
    """Forbid Secrets with values in plain text, and those that Kubernetes fills with credentials."""
    if context.stack is None or manifest.get("kind") != "Secret":
        return
    if manifest.get("type") in _SECRET_TYPES:
        yield f"type {manifest['type']} makes Kubernetes write credentials: use the type Opaque"
    if not context.trusted:
        for member in ("data", "stringData"):
            if manifest.get(member):
                yield f"{member} has values in plain text: use the annotation reside.io/secret-references"


def reserved_names(manifest: Manifest, context: Context) -> Iterator[str]:
    """Reserve the platform's names, and labels `reside.io/*`, for stacks of Alpha."""
    if context.stack is None or context.trusted:
        return
    name = name_of(manifest)
    for what, found in (("name", name), ("stack", context.stack)):
        if isinstance(found, str) and (found in PLATFORM_NAMES or _VERSION_OF_PLATFORM.fullmatch(found)):
            yield f"{what} {found} is reserved for the platform: use another one"
    own = f"{context.stack}{_CERTIFICATES}"
    if manifest.get("kind") == "Secret" and isinstance(name, str) and name.endswith(_CERTIFICATES) and name != own:
        yield f"name {name} is reserved for the certificate of another Ingress: use {own}, or another ending"
    for path, label, value in _labels(manifest):
        if label.startswith(_RESERVED_PREFIX) and (label, value) != (_STACK_LABEL, context.stack):
            yield f"label {label} in {path} is reserved: remove it"
    if manifest.get("kind") == "NetworkPolicy":
        selected = mapping(manifest, "spec", "podSelector")
        if not (mapping(selected, "matchLabels") or items(selected, "matchExpressions")):
            yield "podSelector selects every pod of the cluster: select the pods of this stack by a label"


def engine_annotations(manifest: Manifest, context: Context) -> Iterator[str]:
    """Forbid annotations that change how Pulumi's provider treats the object."""
    if context.stack is None:
        return
    for annotation in mapping(manifest, "metadata", "annotations"):
        if str(annotation).startswith(_ENGINE_PREFIX):
            yield f"annotation {annotation} is set by the Sentinel: remove it"


def _references(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    """Yield kind and name of the objects that an object's pods use."""
    for pod in pod_specs(manifest):
        for member in ("serviceAccountName", "serviceAccount"):
            if pod.get(member):
                yield "ServiceAccount", pod[member]
        yield from (("Secret", each.get("name")) for each in mappings(pod, "imagePullSecrets"))
        for volume in mappings(pod, "volumes"):
            yield from _used_by_volume(volume)
    for container in containers(manifest):
        for source in mappings(container, "envFrom"):
            yield from _named(source, ("configMapRef", "ConfigMap", "name"), ("secretRef", "Secret", "name"))
        for variable in mappings(container, "env"):
            value = mapping(variable, "valueFrom")
            yield from _named(value, ("configMapKeyRef", "ConfigMap", "name"), ("secretKeyRef", "Secret", "name"))


def _used_by_volume(volume: Manifest) -> Iterator[tuple[str, Any]]:
    yield from _named(volume, ("configMap", "ConfigMap", "name"))
    yield from _named(volume, ("secret", "Secret", "secretName"))
    yield from _named(volume, ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"))
    for source in mappings(mapping(volume, "projected"), "sources"):
        yield from _named(source, ("configMap", "ConfigMap", "name"), ("secret", "Secret", "name"))


def _named(parent: Manifest, *sources: tuple[str, str, str]) -> Iterator[tuple[str, Any]]:
    """Yield kind and name of each source, given as its member, kind and member of the name; a missing name is None."""
    for member, kind, name in sources:
        if parent.get(member) is not None:
            yield kind, mapping(parent, member).get(name)


def _labels(manifest: Manifest) -> Iterator[tuple[str, str, Any]]:
    """Yield the labels that an object sets and those by which it selects: place, label, value."""
    spec = mapping(manifest, "spec")
    found: list[tuple[str, Any]] = [("metadata", mapping(manifest, "metadata", "labels"))]
    found += [("the pod template", mapping(each, "metadata", "labels")) for each in pod_templates(manifest)]
    found += [
        ("a claim's template", mapping(each, "metadata", "labels")) for each in mappings(spec, "volumeClaimTemplates")
    ]
    if manifest.get("kind") == "Service":
        found.append(("the selector", mapping(spec, "selector")))
    for selector in (mapping(spec, "podSelector"), mapping(spec, "selector")):
        found.append(("the selector", mapping(selector, "matchLabels")))
        found += [("the selector", {each.get("key"): None}) for each in mappings(selector, "matchExpressions")]
    for place, labels in found:
        if isinstance(labels, Mapping):
            yield from ((place, str(label), value) for label, value in labels.items())
