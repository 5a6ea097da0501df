"""Decide how to repair one object of a stack. Pure.

An object is repaired by a server-side apply of its desired state as our field manager. It restores every field that we
own and writes nothing if none differs. So there is no comparison of our own that could be wrong about defaults or
quantities; a fingerprint of the state that was last verified only saves the request.

Fields that a person added (`kubectl edit`) belong to kubectl's field manager, and an apply would keep them. Their
ownership is first moved to us (`taken_over`), so that the apply, which does not contain them, removes them. Fields of
controllers stay theirs, because a controller would write them again and again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from reside.model.constants import FIELD_MANAGER
from reside.model.stacks import canonical
from reside.sentinel.objects.identity import is_being_deleted, metadata

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject

Action = Literal["leave", "create", "apply"]

_MANUAL: Final = "kubectl"
"""Prefix of the field managers of people: kubectl, kubectl-edit, kubectl-patch, kubectl-client-side-apply, …"""


@dataclass(frozen=True)
class ObjectState:
    """What is known about an object when its repair is decided."""

    desired: K8sObject | None
    """The desired object; None: it is in no stack."""
    live: K8sObject | None
    """The object as the watch shows it; None: there is none with our label."""
    verified: str | None = None
    """Fingerprint of the live state that last agreed with the desired one."""
    finished: bool = False
    """Whether it is a Job that has ended."""


def decide(state: ObjectState) -> Action:
    """Return what to do now."""
    desired, live = state.desired, state.live
    if desired is None:
        return "leave"
    if live is None:
        return "leave" if state.finished else "create"
    if is_being_deleted(live):
        return "leave"  # its deletion will be a separate event
    return "leave" if fingerprint(desired, live) == state.verified else "apply"


def fingerprint(desired: K8sObject, live: K8sObject) -> str:
    """Return a SHA-256 of all that a repair could change, without status, bookkeeping and annotations of controllers.

    It covers which fields people manage, since a person may add a field, but not the times of their writes, which
    change with every request.
    """
    meta = [_ours_of(desired, live, part) for part in ("labels", "annotations")]
    seen = {name: value for name, value in live.items() if name not in ("metadata", "status")}
    manual = [entry.get("fieldsV1") for entry in _entries(live) if is_manual(entry)]
    return hashlib.sha256(canonical([desired, meta, seen, manual]).encode()).hexdigest()


def _ours_of(desired: K8sObject, live: K8sObject, part: str) -> dict[str, Any]:
    """Return those labels or annotations of a live object that the desired object has."""
    found = metadata(live).get(part) or {}
    return {name: found.get(name) for name in metadata(desired).get(part) or {}}


def is_manual(entry: dict[str, Any]) -> bool:
    """Return whether an entry of `managedFields` is a person's write, other than to a status."""
    return str(entry.get("manager", "")).startswith(_MANUAL) and entry.get("subresource") != "status"


def taken_over(live: K8sObject) -> list[dict[str, Any]] | None:
    """Return `managedFields` in which we own all fields that people wrote; None if people wrote none."""
    entries = _entries(live)
    manual = [entry for entry in entries if is_manual(entry)]
    if not manual:
        return None
    ours = next((entry for entry in entries if _is_ours(entry)), None)
    fields: dict[str, Any] = dict(ours["fieldsV1"]) if ours else {}
    for entry in manual:
        fields = _union(fields, entry.get("fieldsV1") or {})
    merged = {
        "manager": FIELD_MANAGER,
        "operation": "Apply",
        "apiVersion": (ours or manual[0])["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if (time := (ours or manual[0]).get("time")) is not None:
        merged["time"] = time
    return [merged, *(entry for entry in entries if not is_manual(entry) and not _is_ours(entry))]


def managers(live: K8sObject) -> list[str]:
    """Return the names of an object's field managers, without those that write only its status."""
    names = [str(entry.get("manager")) for entry in _entries(live) if entry.get("subresource") != "status"]
    return list(dict.fromkeys(names))


def _entries(live: K8sObject) -> list[dict[str, Any]]:
    return list(metadata(live).get("managedFields") or ())


def _is_ours(entry: dict[str, Any]) -> bool:
    return entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource")


def _union(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Return the union of two FieldsV1 trees, in which each member is a subtree."""
    result = dict(left)
    for name, subtree in right.items():
        result[name] = _union(result[name], subtree) if isinstance(result.get(name), dict) else subtree
    return result
