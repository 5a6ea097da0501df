"""Names and ownership of Kubernetes objects. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.model.constants import FIELD_MANAGER, KEEP_ANNOTATION, MANAGED_BY_LABEL, STACK_LABEL
from reside.model.stacks import object_key

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject


def split_key(key: str) -> tuple[str, str]:
    """Split `Kind/name` into kind and name."""
    kind, _, name = key.partition("/")
    return kind, name


def live_key(live: K8sObject) -> str:
    """Return `Kind/name` of a live object."""
    return object_key(live)


def metadata(obj: K8sObject) -> dict[str, Any]:
    """Return the object's metadata; empty if there is none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def is_ours(live: K8sObject) -> bool:
    """Return whether the object carries our managed-by label."""
    return (metadata(live).get("labels") or {}).get(MANAGED_BY_LABEL) == FIELD_MANAGER


def stack_of(live: K8sObject) -> str | None:
    """Return the stack's name in the object's label; None if there is none."""
    name = (metadata(live).get("labels") or {}).get(STACK_LABEL)
    return name if isinstance(name, str) else None


def is_kept(obj: K8sObject) -> bool:
    """Return whether the object's annotation protects it from being deleted or replaced."""
    return (metadata(obj).get("annotations") or {}).get(KEEP_ANNOTATION) == "true"


def is_owned(live: K8sObject) -> bool:
    """Return whether another object controls this one and determines its lifetime."""
    return any(owner.get("controller") for owner in metadata(live).get("ownerReferences") or ())


def is_being_deleted(live: K8sObject) -> bool:
    """Return whether the object is being deleted."""
    return "deletionTimestamp" in metadata(live)


def is_finished_job(live: K8sObject) -> bool:
    """Return whether this is a Job that has completed or failed, and must not run again."""
    conditions = (live.get("status") or {}).get("conditions") or ()
    return live.get("kind") == "Job" and any(
        c.get("type") in ("Complete", "Failed") and c.get("status") == "True" for c in conditions
    )
