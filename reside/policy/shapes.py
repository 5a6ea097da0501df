"""Read members of Kubernetes objects of any shape: what has another type than expected counts as missing. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Manifest = Mapping[str, Any]

TEMPLATED: Final = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"})
"""Kinds with a pod template."""


def mapping(parent: Any, *path: str) -> Manifest:
    """Return the mapping at a path of members, or an empty one if it is missing or not a mapping."""
    value = parent
    for member in path:
        value = value.get(member) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def items(parent: Manifest, member: str) -> Sequence[Any]:
    """Return the list `parent[member]`, or an empty one if it is missing or not a list."""
    value = parent.get(member)
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else ()


def mappings(parent: Manifest, member: str) -> Iterator[Manifest]:
    """Return the mappings in the list `parent[member]`."""
    return (entry for entry in items(parent, member) if isinstance(entry, Mapping))


def name_of(manifest: Manifest) -> Any:
    """Return the name in an object's metadata, whatever its type."""
    return mapping(manifest, "metadata").get("name")


def pod_templates(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the pod template of an object, if its kind has one; of a Pod, the object itself."""
    kind, spec = manifest.get("kind"), mapping(manifest, "spec")
    if kind == "Pod":
        yield manifest
    elif kind == "CronJob":
        yield mapping(spec, "jobTemplate", "spec", "template")
    elif isinstance(kind, str) and kind in TEMPLATED:
        yield mapping(spec, "template")


def pod_specs(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the pod spec of an object, if its kind has one."""
    return (mapping(template, "spec") for template in pod_templates(manifest))


def containers(manifest: Manifest) -> Iterator[Manifest]:
    """Yield all containers of an object's pods."""
    for pod in pod_specs(manifest):
        for member in ("initContainers", "containers", "ephemeralContainers"):
            yield from mappings(pod, member)


def claim_specs(manifest: Manifest) -> Iterator[Manifest]:
    """Yield the specs of the volume claims that an object is or makes."""
    if manifest.get("kind") == "PersistentVolumeClaim":
        yield mapping(manifest, "spec")
    for template in mappings(mapping(manifest, "spec"), "volumeClaimTemplates"):
        yield mapping(template, "spec")
    for pod in pod_specs(manifest):
        for volume in mappings(pod, "volumes"):
            yield mapping(volume, "ephemeral", "volumeClaimTemplate", "spec")
