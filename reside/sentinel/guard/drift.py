"""Decide how to repair one object of a stack. Pure.

An object is repaired by a server-side apply of its desired state as our field manager. It restores every field that we
own and writes nothing if none differs. So there is no comparison of our own that could be wrong about defaults or
quantities; a fingerprint of the state that was last verified only saves the request.

Fields that a person added (`kubectl edit`) belong to kubectl's field manager, and an apply would keep them. Their
ownership is first moved to us (`taken_over`), so that the apply, which does not contain them, removes them. Fields that
other programs added stay theirs and are reported (`additions`), because a program would write them again and again.
With the annotation `reside.io/strict: "true"` they are removed as well; those of Kubernetes itself never are.

Fields that the object leaves to others (`reside.sentinel.objects.yields`) are no drift. But those that people wrote get
a manager of their own: Pulumi's provider, too, takes over what belongs to kubectl, and its apply would remove them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from reside.model.constants import FIELD_MANAGER, STRICT_ANNOTATION, YIELDED_MANAGER
from reside.sentinel.objects import managed_fields
from reside.sentinel.objects.digests import digestible
from reside.sentinel.objects.identity import is_being_deleted, metadata
from reside.sentinel.objects.managed_fields import Managed, is_foreign, is_manual, is_of_apply
from reside.sentinel.objects.yields import comparable, yielded

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject
    from reside.sentinel.objects.managed_fields import Entry, Path

Action = Literal["leave", "create", "apply"]


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

    It covers which fields are to be taken over, since a person may add a field, but not the times of their writes,
    which change with every request.
    """
    seen = comparable(desired, live)
    meta = [_ours_of(desired, seen, part) for part in ("labels", "annotations")]
    rest = {name: value for name, value in seen.items() if name not in ("metadata", "status")}
    return hashlib.sha256(digestible([desired, meta, rest, to_take_over(desired, live)])).hexdigest()


def _ours_of(desired: K8sObject, live: K8sObject, part: str) -> dict[str, Any]:
    """Return those labels or annotations of a live object that the desired object has."""
    found = metadata(live).get(part) or {}
    return {name: found.get(name) for name in metadata(desired).get(part) or {}}


_PROTECTED: Final = (("f:metadata", "f:finalizers"), ("f:metadata", "f:ownerReferences"))
"""Fields that are not removed from an object of a strict stack: other programs depend on them when it is deleted."""


def is_strict(desired: K8sObject) -> bool:
    """Return whether fields that other programs add to an object are removed."""
    return (metadata(desired).get("annotations") or {}).get(STRICT_ANNOTATION) == "true"


def to_take_over(desired: K8sObject, live: K8sObject) -> list[dict[str, Any]]:
    """Return the fields of which others should not be the managers, one tree for each of these managers."""
    found = ((entry, _divided(desired, entry)[1]) for entry in managed_fields.entries(live))
    trees = (managed_fields.fields_of(entry) if is_manual(entry) else goes for entry, goes in found)
    return [tree for tree in trees if tree]


def taken_over(desired: K8sObject, live: K8sObject) -> list[Entry] | None:
    """Return `managedFields` in which we own the fields that are to be reverted; None if there is nothing to change.

    What people wrote to yielded fields belongs to `YIELDED_MANAGER`.
    """
    if not to_take_over(desired, live):
        return None
    entries = managed_fields.entries(live)
    ours = next((entry for entry in entries if is_of_apply(entry)), None)
    fields: dict[str, Any] = managed_fields.fields_of(ours) if ours else {}
    left: dict[str, Any] = {}
    kept = []
    for entry in entries:
        stays, goes = _divided(desired, entry)
        fields = managed_fields.union(fields, goes)
        if _is_of_people(entry):
            left = managed_fields.union(left, stays)
        elif entry is not ours and (stays or not goes):
            kept.append(entry | {"fieldsV1": stays} if goes else entry)
    source = ours or entries[0]
    made = [_entry(source, FIELD_MANAGER, "Apply", fields)] if fields else []
    if left:
        made.append(_entry(source, YIELDED_MANAGER, "Update", left))
    return [*made, *kept]


def _entry(source: Entry, manager: str, operation: str, fields: dict[str, Any]) -> Entry:
    """Return an entry of `managedFields`, with version and time of another one."""
    time = {"time": source["time"]} if "time" in source else {}
    names = {"manager": manager, "operation": operation, "apiVersion": source["apiVersion"], "fieldsType": "FieldsV1"}
    return names | {"fieldsV1": fields} | time


def _is_of_people(entry: Entry) -> bool:
    return is_manual(entry) or entry.get("manager") == YIELDED_MANAGER


def additions(desired: K8sObject, live: K8sObject) -> list[Managed]:
    """Return the fields that other programs have added to an object: neither desired nor left to others."""
    left = yielded(desired)
    return [
        Managed(managed_fields.manager_of(entry), path)
        for entry in managed_fields.entries(live)
        if is_foreign(entry) and not _is_of_people(entry)
        for path in managed_fields.leaves(managed_fields.fields_of(entry))
        if not managed_fields.is_in(path, left) and not managed_fields.has(desired, path)
    ]


def _divided(desired: K8sObject, entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Divide the fields of an entry into those that stay its manager's and those that are to be reverted."""
    stay: tuple[Path, ...] = yielded(desired)
    if is_foreign(entry) and is_strict(desired) and not _is_of_people(entry):
        stay += _PROTECTED
    elif not _is_of_people(entry):
        return managed_fields.fields_of(entry), {}
    return managed_fields.divided(managed_fields.fields_of(entry), stay)


def managers(live: K8sObject) -> list[str]:
    """Return the names of an object's field managers, without those that write only its status."""
    found = managed_fields.entries(live)
    names = [str(entry.get("manager")) for entry in found if entry.get("subresource") != "status"]
    return list(dict.fromkeys(names))
