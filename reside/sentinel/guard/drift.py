"""What to do about one object that should be as a stack says: pure decisions of the fast path.

An object is put back by a server-side apply of its manifest as our field manager, which restores every field that we
own and writes nothing when none differs. So there is no comparison of our own that could be wrong about defaults or
quantities; a fingerprint of what was found in order only spares the request.

Fields that a hand added beside ours (``kubectl edit``) belong to kubectl's field manager, and an apply would leave
them. They are first made ours (``taken_over``), so that the apply, which does not name them, removes them. Fields of
controllers stay theirs: removing what a controller writes would be a fight without end.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from reside.model.constants import FIELD_MANAGER
from reside.model.stacks import canonical
from reside.sentinel.objects.identity import is_going, metadata

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject

Action = Literal["leave", "create", "apply"]

_HANDS: Final = "kubectl"
"""Field managers that begin so are people: kubectl, kubectl-edit, kubectl-patch, kubectl-client-side-apply, …"""


@dataclass(frozen=True)
class Standing:
    """What is known of an object when its repair is decided."""

    desired: K8sObject | None
    """Its manifest in force; None: no stack wants it."""
    live: K8sObject | None
    """The object as the watch shows it; None: there is none that carries our label."""
    verified: str | None = None
    """Fingerprint of the state that was last found, or made, right."""
    finished: bool = False
    """It is a Job that has ended before."""


def decide(standing: Standing) -> Action:
    """What to do now."""
    desired, live = standing.desired, standing.live
    if desired is None:
        return "leave"
    if live is None:
        return "leave" if standing.finished else "create"
    if is_going(live):
        return "leave"  # its end is an event of its own
    return "leave" if fingerprint(desired, live) == standing.verified else "apply"


def fingerprint(desired: K8sObject, live: K8sObject) -> str:
    """SHA-256 of all that a repair could change; status, bookkeeping and what controllers annotate are not part of it.

    What people manage is part of it, since a hand may add a field, but not when: times change with every request.
    """
    meta = [_ours_of(desired, live, part) for part in ("labels", "annotations")]
    seen = {name: value for name, value in live.items() if name not in ("metadata", "status")}
    hands = [entry.get("fieldsV1") for entry in _entries(live) if is_hand(entry)]
    return hashlib.sha256(canonical([desired, meta, seen, hands]).encode()).hexdigest()


def _ours_of(desired: K8sObject, live: K8sObject, part: str) -> dict[str, Any]:
    """Labels or annotations of a live object, as far as the manifest names them."""
    found = metadata(live).get(part) or {}
    return {name: found.get(name) for name in metadata(desired).get(part) or {}}


def is_hand(entry: dict[str, Any]) -> bool:
    """Whether an entry of ``managedFields`` is a person's write, other than to a status."""
    return str(entry.get("manager", "")).startswith(_HANDS) and entry.get("subresource") != "status"


def taken_over(live: K8sObject) -> list[dict[str, Any]] | None:
    """``managedFields`` in which all that people wrote is ours; None if there is nothing of that kind."""
    entries = _entries(live)
    hands = [entry for entry in entries if is_hand(entry)]
    if not hands:
        return None
    ours = next((entry for entry in entries if _is_ours(entry)), None)
    fields: dict[str, Any] = dict(ours["fieldsV1"]) if ours else {}
    for hand in hands:
        fields = _union(fields, hand.get("fieldsV1") or {})
    mine = {
        "manager": FIELD_MANAGER,
        "operation": "Apply",
        "apiVersion": (ours or hands[0])["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    if (time := (ours or hands[0]).get("time")) is not None:
        mine["time"] = time
    return [mine, *(entry for entry in entries if not is_hand(entry) and not _is_ours(entry))]


def managers(live: K8sObject) -> list[str]:
    """Names of the field managers of an object, other than controllers' writes to its status."""
    names = [str(entry.get("manager")) for entry in _entries(live) if entry.get("subresource") != "status"]
    return list(dict.fromkeys(names))


def _entries(live: K8sObject) -> list[dict[str, Any]]:
    return list(metadata(live).get("managedFields") or ())


def _is_ours(entry: dict[str, Any]) -> bool:
    return entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource")


def _union(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Union of two FieldsV1 trees: an object whose members are subtrees."""
    result = dict(left)
    for name, subtree in right.items():
        result[name] = _union(result[name], subtree) if isinstance(result.get(name), dict) else subtree
    return result
