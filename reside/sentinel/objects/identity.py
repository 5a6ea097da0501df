"""Pure functions over Kubernetes objects: whose they are and what they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, STACK_LABEL
from reside.model.stacks import object_key

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject


def split_key(key: str) -> tuple[str, str]:
    """Kind and name out of ``Kind/name``."""
    kind, _, name = key.partition("/")
    return kind, name


def live_key(live: K8sObject) -> str:
    """``Kind/name`` of a live object of one of our kinds."""
    return object_key(live)


def metadata(obj: K8sObject) -> dict[str, Any]:
    """The object's metadata; empty when there is none."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def is_ours(live: K8sObject) -> bool:
    """Whether the object carries our managed-by label."""
    return (metadata(live).get("labels") or {}).get(MANAGED_BY_LABEL) == FIELD_MANAGER


def stack_of(live: K8sObject) -> str | None:
    """Name of the stack that the object says it belongs to."""
    name = (metadata(live).get("labels") or {}).get(STACK_LABEL)
    return name if isinstance(name, str) else None


def is_owned(live: K8sObject) -> bool:
    """Whether another object controls this one, so that it comes and goes with that."""
    return any(owner.get("controller") for owner in metadata(live).get("ownerReferences") or ())


def is_going(live: K8sObject) -> bool:
    """Whether the object is being deleted."""
    return "deletionTimestamp" in metadata(live)


def is_finished_job(live: K8sObject) -> bool:
    """Whether this is a Job that has completed or failed: running it again would do its work twice."""
    conditions = (live.get("status") or {}).get("conditions") or ()
    return live.get("kind") == "Job" and any(
        c.get("type") in ("Complete", "Failed") and c.get("status") == "True" for c in conditions
    )
