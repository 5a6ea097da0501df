"""The rules that every Kubernetes object of a ReSide cluster must obey, as pure functions of one object.

A rule is a function from an object and a `Context` to messages, each of which says how to correct the object. `check`
applies all rules to all objects of a stack. The Sentinel calls it before every apply and preview; `policy/__main__.py`
applies the rules that need no stack in `pulumi preview --policy-pack policy`.

Invariants: the package imports the standard library only, so every package may use it; a message never contains a value
of a Secret or an environment variable; an object of unexpected shape never raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from reside.policy.context import Context
from reside.policy.network_rules import internal_services, own_paths
from reside.policy.shapes import Manifest, containers, items, mapping, mappings, name_of, pod_specs
from reside.policy.stack_rules import (
    engine_annotations,
    narrow_roles,
    own_references,
    own_roles,
    reserved_names,
    secret_values,
)

__all__ = ["RULES", "Context", "Manifest", "Violation", "check", "check_object", "object_name"]

MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
ALLOWED_KINDS: Final = frozenset(
    {
        "Deployment",
        "StatefulSet",
        "Job",
        "Secret",
        "ConfigMap",
        "Service",
        "Ingress",
        "NetworkPolicy",
        "PersistentVolumeClaim",
        "ServiceAccount",
        "Role",
        "RoleBinding",
    }
)
_BY_DIGEST = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}")
_ESCALATING = ("escalate", "bind", "impersonate")
_VOLUMES: Final = frozenset(
    {"configMap", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
)
_TOLERATED: Final = frozenset(
    {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "reside.io/placement-group"}
)
_SYSTEM_PRIORITY: Final = "system-"


@dataclass(frozen=True)
class Violation:
    """One broken rule: its name, the object as `Kind/name`, and how to correct it."""

    rule: str
    object: str
    message: str

    def __str__(self) -> str:
        return f"{self.object} breaks {self.rule}: {self.message}"


Rule = Callable[[Manifest, Context], Iterator[str]]


def check(objects: Iterable[Manifest], context: Context) -> list[Violation]:
    """Return all violations of the objects of one stack, in the order of objects and rules."""
    stack = list(objects)
    own = replace(context, own=frozenset(object_name(manifest) for manifest in stack))
    return [violation for manifest in stack for violation in check_object(manifest, own)]


def check_object(manifest: Manifest, context: Context) -> list[Violation]:
    """Return all violations of one object."""
    name = object_name(manifest)
    return [Violation(rule, name, message) for rule, judge in RULES.items() for message in judge(manifest, context)]


def object_name(manifest: Manifest) -> str:
    """Return `Kind/name` of an object, with `?` for what is missing."""
    return f"{manifest.get('kind') or '?'}/{name_of(manifest) or '?'}"


def kinds(manifest: Manifest, _: Context) -> Iterator[str]:
    """Allow only the twelve namespaced kinds that ReSide manages."""
    kind = manifest.get("kind")
    if not isinstance(kind, str) or kind not in ALLOWED_KINDS:
        yield f"kind {kind} is not allowed: use one of {', '.join(sorted(ALLOWED_KINDS))}"


def namespace(manifest: Manifest, context: Context) -> Iterator[str]:
    """Confine objects to the cluster's namespace."""
    found = mapping(manifest, "metadata").get("namespace")
    if found and context.namespace and found != context.namespace:
        yield f"namespace {found} is not the one of this cluster: omit it or set it to {context.namespace}"


def managed_by(manifest: Manifest, context: Context) -> Iterator[str]:
    """Require the managed-by label."""
    labels = mapping(manifest, "metadata", "labels")
    if labels.get(MANAGED_BY_LABEL) != context.manager:
        yield f"set the label {MANAGED_BY_LABEL}: {context.manager}"


def images_by_digest(manifest: Manifest, _: Context) -> Iterator[str]:
    """Require images by digest, so that the approved image is what runs."""
    for container in containers(manifest):
        image = container.get("image")
        if not isinstance(image, str) or not _BY_DIGEST.fullmatch(image):
            name = container.get("name")
            yield f"container {name} uses image {image}: name it by digest, NAME@sha256:<64 hex digits>"


def privileges(manifest: Manifest, _: Context) -> Iterator[str]:
    """Forbid privileged containers and added capabilities."""
    for container in containers(manifest):
        name, security = container.get("name"), mapping(container, "securityContext")
        if security.get("privileged"):
            yield f"container {name} is privileged: remove securityContext.privileged"
        added = items(mapping(security, "capabilities"), "add")
        if added:
            yield f"container {name} adds capabilities {', '.join(map(str, added))}: remove capabilities.add"
        if security.get("procMount", "Default") != "Default":
            yield f"container {name} unmasks /proc: remove securityContext.procMount"


def host_access(manifest: Manifest, _: Context) -> Iterator[str]:
    """Forbid access to the node: host network, PID and IPC namespace, host paths, host ports."""
    for pod in pod_specs(manifest):
        for member in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.get(member):
                yield f"{member} is on: remove it"
        for volume in mappings(pod, "volumes"):
            if volume.get("hostPath") is not None:
                yield f"volume {volume.get('name')} is a host path: use a PersistentVolumeClaim or an emptyDir"
    for container in containers(manifest):
        for port in mappings(container, "ports"):
            if port.get("hostPort"):
                yield f"container {container.get('name')} takes host port {port['hostPort']}: use a Service"


def volume_types(manifest: Manifest, _: Context) -> Iterator[str]:
    """Allow only volumes that Kubernetes itself provides."""
    for pod in pod_specs(manifest):
        for volume in mappings(pod, "volumes"):
            for kind in sorted(str(member) for member in volume if member not in ("name", "hostPath", *_VOLUMES)):
                yield f"volume {volume.get('name')} is of type {kind}: use one of {', '.join(sorted(_VOLUMES))}"


def scheduling(manifest: Manifest, _: Context) -> Iterator[str]:
    """Forbid to bypass the scheduler, to tolerate taints, and to displace the pods of the system."""
    for pod in pod_specs(manifest):
        if pod.get("nodeName"):
            yield "nodeName bypasses the scheduler: use a nodeSelector"
        if str(pod.get("priorityClassName") or "").startswith(_SYSTEM_PRIORITY):
            yield f"priorityClassName {pod['priorityClassName']} is reserved for the system: use another one"
        for toleration in mappings(pod, "tolerations"):
            key = toleration.get("key")
            if not isinstance(key, str) or key not in _TOLERATED:
                yield f"a toleration of {key or 'every taint'} lets pods run where others may not: remove it"


def rbac(manifest: Manifest, _: Context) -> Iterator[str]:
    """Forbid wildcards in Roles, and verbs that allow privilege escalation."""
    if manifest.get("kind") not in ("Role", "ClusterRole"):
        return
    for rule in mappings(manifest, "rules"):
        for member in ("apiGroups", "resources", "verbs"):
            if any("*" in str(value) for value in items(rule, member)):
                yield f"{member} holds a wildcard: name each one"
        for verb in items(rule, "verbs"):
            if verb in _ESCALATING:
                yield f"verb {verb} allows privilege escalation: remove it"


def bindings(manifest: Manifest, context: Context) -> Iterator[str]:
    """Allow role bindings only from Roles to service accounts of the namespace."""
    if manifest.get("kind") not in ("RoleBinding", "ClusterRoleBinding"):
        return
    role = mapping(manifest, "roleRef")
    if role.get("kind") != "Role":
        yield f"roleRef names {role.get('kind')} {role.get('name')}: bind a Role of this namespace"
    for subject in mappings(manifest, "subjects"):
        if subject.get("kind") != "ServiceAccount":
            yield f"subject {subject.get('kind')} {subject.get('name')}: bind a ServiceAccount of this namespace"
        elif context.namespace and subject.get("namespace", context.namespace) != context.namespace:
            yield f"subject {subject.get('name')} is in namespace {subject['namespace']}: use {context.namespace}"


RULES: Final[dict[str, Rule]] = {
    "allowed-kinds": kinds,
    "namespace-confinement": namespace,
    "managed-by-label": managed_by,
    "images-by-digest": images_by_digest,
    "no-privileges": privileges,
    "no-host-access": host_access,
    "no-rbac-wildcards": rbac,
    "local-role-bindings": bindings,
    "volume-types": volume_types,
    "no-scheduling-privileges": scheduling,
    "internal-services": internal_services,
    "own-references": own_references,
    "own-roles": own_roles,
    "narrow-roles": narrow_roles,
    "no-secret-values": secret_values,
    "reserved-names": reserved_names,
    "engine-annotations": engine_annotations,
    "own-ingress-paths": own_paths,
}
"""Name → rule. The names are stable: users see them, and a test freezes them."""
