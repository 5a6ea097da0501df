"""The rules that every Kubernetes object of a ReSide cluster must obey, as pure functions of one object.

A rule is a function from an object and a `Context` to messages, each of which says how to correct the object, with a
reason, a cure and a level. `review` applies all rules to all objects of a stack. The Sentinel calls it before every
apply and preview; `policy/__main__.py` applies the rules that need no stack in `pulumi preview --policy-pack policy`.
`reside.policy.settings` changes levels and adds the rules of an organisation.

Invariants: the package imports the standard library only, so every package may use it; a message never contains a value
of a Secret or an environment variable; an object of unexpected shape never raises an error.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reside.policy.context import Context
from reside.policy.network_rules import internal_services, own_paths
from reside.policy.pod_rules import network_policies, non_root, read_only_root, resource_requests, seccomp
from reside.policy.rule import Rule, Violation
from reside.policy.settings import Policy, PolicyError, parse
from reside.policy.shapes import Manifest, containers, items, mapping, mappings, name_of, pod_specs
from reside.policy.stack_rules import (
    engine_annotations,
    narrow_roles,
    own_references,
    own_roles,
    reserved_names,
    secret_values,
)
from reside.policy.yielded_fields import yielded_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "RULES",
    "Context",
    "Manifest",
    "Policy",
    "PolicyError",
    "Rule",
    "Violation",
    "check",
    "default_policy",
    "object_name",
    "policy_of",
    "review",
]

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
        "HTTPRoute",
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


def check(objects: Iterable[Manifest], context: Context, policy: Policy | None = None) -> list[Violation]:
    """Return the violations of mandatory rules, which refuse a stack. See `review`."""
    return [violation for violation in review(objects, context, policy) if violation.level == "mandatory"]


def review(objects: Iterable[Manifest], context: Context, policy: Policy | None = None) -> list[Violation]:
    """Return all violations of the objects of one stack, in the order of objects and rules.

    Args:
        objects: the objects of the stack.
        context: what they are compared with.
        policy: the rules and their levels; None: those of ReSide.
    """
    stack = list(objects)
    selectors = tuple(mapping(each, "spec", "podSelector") for each in stack if each.get("kind") == "NetworkPolicy")
    own = frozenset(object_name(manifest) for manifest in stack)
    known = replace(context, own=own, selectors=selectors)
    chosen = policy or default_policy()
    return [violation for manifest in stack for violation in _violations(manifest, known, chosen)]


def default_policy() -> Policy:
    """Return the policy of a cluster without settings."""
    return Policy(RULES)


def policy_of(document: object) -> Policy:
    """Return the policy that settings describe (`reside.policy.settings`).

    Raises:
        PolicyError: the settings are malformed.
    """
    return parse(document, RULES)


def _violations(manifest: Manifest, context: Context, policy: Policy) -> Iterator[Violation]:
    name = object_name(manifest)
    for rule_name, rule in policy.rules.items():
        for message in rule.judge(manifest, context):
            level = policy.level(rule_name, context)
            yield Violation(rule_name, name, message, level, rule.reason, rule.cure)


def object_name(manifest: Manifest) -> str:
    """Return `Kind/name` of an object, with `?` for what is missing."""
    return f"{manifest.get('kind') or '?'}/{name_of(manifest) or '?'}"


def kinds(manifest: Manifest, _: Context) -> Iterator[str]:
    """Allow only the thirteen namespaced kinds that ReSide manages."""
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
    "allowed-kinds": Rule(
        kinds,
        "The Sentinel has no access to other kinds.",
        f"use one of {', '.join(sorted(ALLOWED_KINDS))}",
        is_fixed=True,
    ),
    "namespace-confinement": Rule(
        namespace, "A cluster is one namespace.", "omit metadata.namespace, or set it to the cluster's", is_fixed=True
    ),
    "managed-by-label": Rule(
        managed_by,
        "The Sentinel watches, repairs and prunes by this label.",
        f"set the label {MANAGED_BY_LABEL}",
        is_fixed=True,
    ),
    "images-by-digest": Rule(
        images_by_digest, "A tag may be moved after the approval.", "name images NAME@sha256:<64 hex digits>"
    ),
    "no-privileges": Rule(
        privileges, "A privileged container controls its node.", "remove privileged, capabilities.add and procMount"
    ),
    "no-host-access": Rule(
        host_access,
        "The node's network, processes and files belong to all clusters.",
        "use Services, claims and emptyDirs",
    ),
    "no-rbac-wildcards": Rule(
        rbac, "A wildcard covers what is added later, too.", "name each API group, resource and verb"
    ),
    "local-role-bindings": Rule(
        bindings, "Rights of one cluster must not reach another.", "bind a Role to a ServiceAccount of this namespace"
    ),
    "volume-types": Rule(
        volume_types, "Other volumes reach nodes and networks past Kubernetes.", "use a PersistentVolumeClaim"
    ),
    "no-scheduling-privileges": Rule(
        scheduling, "Nodes and system priorities are the operator's choice.", "use a placement group"
    ),
    "internal-services": Rule(
        internal_services, "Ingresses alone open a cluster to the outside.", "use type ClusterIP and an Ingress"
    ),
    "own-references": Rule(
        own_references,
        "Whoever may declare pods must not read what others own.",
        "declare what pods use in their stack",
    ),
    "own-roles": Rule(own_roles, "A binding grants what its Role says.", "declare the Role in the same stack"),
    "narrow-roles": Rule(
        narrow_roles,
        "Access to all Secrets is access to every account.",
        "name the Secrets of this stack in resourceNames",
    ),
    "no-secret-values": Rule(
        secret_values,
        "Whoever may read stacks would read the values.",
        "use the annotation reside.io/secret-references",
    ),
    "reserved-names": Rule(
        reserved_names, "An object with such a name would take the platform's place.", "use another name or label"
    ),
    "engine-annotations": Rule(
        engine_annotations,
        "These annotations change what the engine does.",
        "remove annotations pulumi.com/*",
        is_fixed=True,
    ),
    "own-ingress-paths": Rule(
        own_paths, "All Ingresses share one host.", "serve paths below /replicas/<stack>/ by Services of the stack"
    ),
    "yielded-fields": Rule(
        yielded_fields,
        "Another program that owns a field could change what the other rules judge.",
        "yield only the fields that docs/model.md lists",
        is_fixed=True,
    ),
    "resource-requests": Rule(
        resource_requests,
        "Kubernetes places pods by their requests, and ends those without first.",
        "set resources.requests.cpu and resources.requests.memory",
        "advisory",
    ),
    "read-only-root": Rule(
        read_only_root,
        "An intruder can't change programs that can't be written.",
        "set securityContext.readOnlyRootFilesystem, and mount an emptyDir where the program writes",
        "advisory",
    ),
    "run-as-non-root": Rule(
        non_root,
        "Root in a container is root on the node if the container is escaped.",
        "set securityContext.runAsNonRoot",
        "advisory",
    ),
    "seccomp-profile": Rule(
        seccomp,
        "Most faults of the kernel are in system calls that no program needs.",
        "set securityContext.seccompProfile.type to RuntimeDefault",
        "advisory",
    ),
    "network-policies": Rule(
        network_policies,
        "Without a NetworkPolicy every pod of the Kubernetes cluster reaches the pods.",
        "declare a NetworkPolicy in the stack that selects them",
        "advisory",
    ),
}
"""Name → rule. The names are stable: users see them, and a test freezes them."""
