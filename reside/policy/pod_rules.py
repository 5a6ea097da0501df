"""Rules about how pods run: what they ask for, as whom, with which system calls, and who reaches them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reside.policy.shapes import containers, items, mapping, mappings, pod_specs, pod_templates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.policy.context import Context
    from reside.policy.shapes import Manifest

_RESOURCES: Final = ("cpu", "memory")
_PROFILES: Final = ("RuntimeDefault", "Localhost")


def resource_requests(manifest: Manifest, _: Context) -> Iterator[str]:
    """Require requests of CPU and memory, or limits, which Kubernetes takes as requests."""
    for container in containers(manifest):
        asked = {**mapping(container, "resources", "limits"), **mapping(container, "resources", "requests")}
        missing = [name for name in _RESOURCES if not asked.get(name)]
        if missing:
            yield f"container {container.get('name')} requests no {' and no '.join(missing)}: set resources.requests"


def read_only_root(manifest: Manifest, _: Context) -> Iterator[str]:
    """Require a read-only root file system."""
    for container in containers(manifest):
        if mapping(container, "securityContext").get("readOnlyRootFilesystem") is not True:
            yield (
                f"container {container.get('name')} may write to its image's files: set "
                "securityContext.readOnlyRootFilesystem, and mount an emptyDir where it writes"
            )


def non_root(manifest: Manifest, _: Context) -> Iterator[str]:
    """Require that Kubernetes starts no container as root."""
    for container, pod in _with_pod(manifest):
        own, shared = mapping(container, "securityContext"), mapping(pod, "securityContext")
        if own.get("runAsNonRoot", shared.get("runAsNonRoot")) is not True:
            yield f"container {container.get('name')} may run as root: set securityContext.runAsNonRoot"
        elif own.get("runAsUser", shared.get("runAsUser")) == 0:
            yield f"container {container.get('name')} has the user 0: set securityContext.runAsUser to another one"


def seccomp(manifest: Manifest, _: Context) -> Iterator[str]:
    """Require a seccomp profile."""
    for container, pod in _with_pod(manifest):
        found = [mapping(holder, "securityContext", "seccompProfile").get("type") for holder in (container, pod)]
        profile = found[0] if found[0] is not None else found[1]
        if profile not in _PROFILES:
            yield (
                f"container {container.get('name')} may use every system call: set "
                "securityContext.seccompProfile.type to RuntimeDefault"
            )


def network_policies(manifest: Manifest, context: Context) -> Iterator[str]:
    """Require that a NetworkPolicy of the stack selects the pods of each workload."""
    if context.stack is None:
        return
    for template in pod_templates(manifest):
        labels = mapping(template, "metadata", "labels")
        if not any(_selects(selector, labels) for selector in context.selectors):
            yield "every pod of the cluster may reach its pods: declare a NetworkPolicy that selects them in this stack"


def _with_pod(manifest: Manifest) -> Iterator[tuple[Manifest, Manifest]]:
    """Yield each container with the spec of its pod."""
    for pod in pod_specs(manifest):
        for member in ("initContainers", "containers", "ephemeralContainers"):
            yield from ((container, pod) for container in mappings(pod, member))


def _selects(selector: Manifest, labels: Manifest) -> bool:
    """Return whether a label selector matches labels. One that Kubernetes would refuse matches nothing."""
    required = mapping(selector, "matchLabels")
    return all(labels.get(name) == value for name, value in required.items()) and all(
        _holds(each, labels) for each in mappings(selector, "matchExpressions")
    )


def _holds(expression: Manifest, labels: Manifest) -> bool:
    key, operator = expression.get("key"), expression.get("operator")
    found: Any = labels.get(key) if isinstance(key, str) else None
    if operator in ("In", "NotIn"):
        return bool((found in items(expression, "values")) == (operator == "In"))
    return operator in ("Exists", "DoesNotExist") and (found is not None) is (operator == "Exists")
