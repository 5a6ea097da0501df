"""The rules that every Kubernetes object of a ReSide cluster must obey, as pure functions of one object.

A rule is a function from an object and a `Context` to messages, each of which says how to correct the object. `check`
applies all rules to all objects. The Sentinel calls it before every apply and preview; `policy/__main__.py` applies the
same rules in `pulumi preview --policy-pack policy`.

Invariants: only the standard library is imported, so every package may use this one; a message never contains a value
of a Secret or an environment variable; an object of unexpected shape never raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Manifest = Mapping[str, Any]

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
_TEMPLATED = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"})
_ESCALATING = ("escalate", "bind", "impersonate")


@dataclass(frozen=True)
class Context:
    """What the rules compare with: the cluster's namespace (None: not checked), the value of the managed-by label."""

    namespace: str | None
    manager: str = "kubernetes-sentinel"


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
    """Return all violations of `objects`, in the order of objects and rules."""
    return [violation for manifest in objects for violation in check_object(manifest, context)]


def check_object(manifest: Manifest, context: Context) -> list[Violation]:
    """Return all violations of one object."""
    name = object_name(manifest)
    return [Violation(rule, name, message) for rule, judge in RULES.items() for message in judge(manifest, context)]


def object_name(manifest: Manifest) -> str:
    """Return `Kind/name` of an object, with `?` for what is missing."""
    return f"{manifest.get('kind') or '?'}/{_map(manifest, 'metadata').get('name') or '?'}"


def kinds(manifest: Manifest, _: Context) -> Iterator[str]:
    """Allow only the twelve namespaced kinds that ReSide manages."""
    kind = manifest.get("kind")
    if not isinstance(kind, str) or kind not in ALLOWED_KINDS:
        yield f"kind {kind} is not allowed: use one of {', '.join(sorted(ALLOWED_KINDS))}"


def namespace(manifest: Manifest, context: Context) -> Iterator[str]:
    """Confine objects to the cluster's namespace."""
    found = _map(manifest, "metadata").get("namespace")
    if found and context.namespace and found != context.namespace:
        yield f"namespace {found} is not the one of this cluster: omit it or set it to {context.namespace}"


def managed_by(manifest: Manifest, context: Context) -> Iterator[str]:
    """Require the managed-by label."""
    labels = _map(_map(manifest, "metadata"), "labels")
    if labels.get(MANAGED_BY_LABEL) != context.manager:
        yield f"set the label {MANAGED_BY_LABEL}: {context.manager}"


def images_by_digest(manifest: Manifest, _: Context) -> Iterator[str]:
    """Require images by digest, so that the approved image is what runs."""
    for container in _containers(manifest):
        image = container.get("image")
        if not isinstance(image, str) or not _BY_DIGEST.fullmatch(image):
            name = container.get("name")
            yield f"container {name} uses image {image}: name it by digest, NAME@sha256:<64 hex digits>"


def privileges(manifest: Manifest, _: Context) -> Iterator[str]:
    """Forbid privileged containers and added capabilities."""
    for container in _containers(manifest):
        name, security = container.get("name"), _map(container, "securityContext")
        if security.get("privileged"):
            yield f"container {name} is privileged: remove securityContext.privileged"
        added = _list(_map(security, "capabilities"), "add")
        if added:
            yield f"container {name} adds capabilities {', '.join(map(str, added))}: remove capabilities.add"
        if security.get("procMount", "Default") != "Default":
            yield f"container {name} unmasks /proc: remove securityContext.procMount"


def host_access(manifest: Manifest, _: Context) -> Iterator[str]:
    """Forbid access to the node: host network, PID and IPC namespace, host paths, host ports."""
    for pod in _pod_specs(manifest):
        for member in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.get(member):
                yield f"{member} is on: remove it"
        for volume in _maps(pod, "volumes"):
            if volume.get("hostPath") is not None:
                yield f"volume {volume.get('name')} is a host path: use a PersistentVolumeClaim or an emptyDir"
    for container in _containers(manifest):
        for port in _maps(container, "ports"):
            if port.get("hostPort"):
                yield f"container {container.get('name')} takes host port {port['hostPort']}: use a Service"


def rbac(manifest: Manifest, _: Context) -> Iterator[str]:
    """Forbid wildcards in Roles, and verbs that allow privilege escalation."""
    if manifest.get("kind") not in ("Role", "ClusterRole"):
        return
    for rule in _maps(manifest, "rules"):
        for member in ("apiGroups", "resources", "verbs"):
            if any("*" in str(value) for value in _list(rule, member)):
                yield f"{member} holds a wildcard: name each one"
        for verb in _list(rule, "verbs"):
            if verb in _ESCALATING:
                yield f"verb {verb} allows privilege escalation: remove it"


def bindings(manifest: Manifest, context: Context) -> Iterator[str]:
    """Allow role bindings only from Roles to service accounts of the namespace."""
    if manifest.get("kind") not in ("RoleBinding", "ClusterRoleBinding"):
        return
    role = _map(manifest, "roleRef")
    if role.get("kind") != "Role":
        yield f"roleRef names {role.get('kind')} {role.get('name')}: bind a Role of this namespace"
    for subject in _maps(manifest, "subjects"):
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
}
"""Name → rule. The names are stable: users see them, and a test freezes them."""


def _pod_specs(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the pod spec of an object, if its kind has one."""
    kind, spec = manifest.get("kind"), _map(manifest, "spec")
    if kind == "Pod":
        yield spec
    elif kind == "CronJob":
        yield _map(_map(_map(_map(spec, "jobTemplate"), "spec"), "template"), "spec")
    elif isinstance(kind, str) and kind in _TEMPLATED:
        yield _map(_map(spec, "template"), "spec")


def _containers(manifest: Manifest) -> Iterator[Manifest]:
    for pod in _pod_specs(manifest):
        for member in ("initContainers", "containers", "ephemeralContainers"):
            yield from _maps(pod, member)


def _map(parent: Manifest, member: str) -> Manifest:
    """Return the mapping `parent[member]`, or an empty one if it is missing or not a mapping."""
    value = parent.get(member)
    return value if isinstance(value, Mapping) else {}


def _maps(parent: Manifest, member: str) -> Iterator[Manifest]:
    """Return the mappings in the list `parent[member]`."""
    return (entry for entry in _list(parent, member) if isinstance(entry, Mapping))


def _list(parent: Manifest, member: str) -> Sequence[Any]:
    """Return the list `parent[member]`, or an empty one if it is missing or not a list."""
    value = parent.get(member)
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()
