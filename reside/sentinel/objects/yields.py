"""Fields of an object that are left to others, in every apply: by the engine, and by a repair. Pure.

A stack yields fields with the annotation `reside.io/yield` (reside/policy/yielded_fields.py). The pod template's
annotation by which `kubectl rollout restart` restarts the pods is always yielded.

A yielded field has its declared value until another manager owns it. From then on an apply does not contain it, so that
it keeps the value of the other manager; if that manager gives it up, the declared value applies again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reside.model.stacks import object_key
from reside.policy.yielded_fields import allowed_yields
from reside.sentinel.objects import managed_fields
from reside.sentinel.objects.identity import metadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reside.model.stacks import K8sObject
    from reside.sentinel.objects.managed_fields import Path

_RESTARTED: Final = managed_fields.member(
    "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"
)
_RESTARTABLE: Final = frozenset({"Deployment", "StatefulSet"})


def yielded(desired: K8sObject) -> tuple[Path, ...]:
    """Return the fields that an object leaves to others."""
    paths = tuple(managed_fields.member(*path) for path in allowed_yields(desired))
    return (*paths, _RESTARTED) if desired.get("kind") in _RESTARTABLE else paths


def left_to_others(desired: K8sObject, live: K8sObject | None) -> K8sObject:
    """Return the object as it is to be applied: without the yielded fields that other managers own.

    Args:
        desired: the desired object.
        live: the live object, with the `managedFields` of others; None: there is none.
    """
    result = desired
    others = managed_fields.others(live) if live is not None else []
    for path in yielded(desired) if others else ():
        for field in _fields(managed_fields.value_at(desired, path), path):
            if managed_fields.owners(others, field):
                result = managed_fields.without(result, field)
    return result


def unless_changed(wanted: K8sObject, live: K8sObject | None) -> K8sObject:
    """Return an object that the API server applies only to this version, if it sets a field that others may take.

    A live state from a watch may be older than another manager's write to that field.
    """
    version = metadata(live).get("resourceVersion") if live is not None else None
    if version is None or all(managed_fields.value_at(wanted, path) is None for path in yielded(wanted)):
        return wanted
    return wanted | {"metadata": metadata(wanted) | {"resourceVersion": version}}


def to_apply(objects: Iterable[K8sObject], live: Callable[[str], K8sObject | None]) -> tuple[K8sObject, ...]:
    """Return the objects of a stack as they are to be applied.

    Args:
        objects: the desired objects.
        live: returns the live object `Kind/name`, see `left_to_others`.
    """
    return tuple(left_to_others(obj, live(object_key(obj))) if yielded(obj) else obj for obj in objects)


def comparable(desired: K8sObject, live: K8sObject) -> K8sObject:
    """Return a live object without the fields that the desired one leaves to others."""
    for path in yielded(desired):
        live = managed_fields.without(live, path)
    return live


def _fields(value: Any, path: Path) -> list[Path]:
    """Return the path of each field at a path: of a map, those of its members."""
    if isinstance(value, dict):
        return [field for name, inner in value.items() for field in _fields(inner, (*path, f"f:{name}"))]
    return [path]
