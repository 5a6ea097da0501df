"""Decide which unknown objects are deleted at once, and which wait for an operator's confirmation. Pure.

An object is *unknown* if it carries our label and neither a desired nor a stored stack contains it. An accident (a
volume that was lost, a stack that can't be read, a clock that is behind) makes many objects unknown at the same time.
So these wait for a confirmation:

* all objects, unless every entry of `desired` was read and accepted, and the volume is established;
* all objects, if they are more than `most` allows, together with those deleted within `WINDOW_S`;
* each PersistentVolumeClaim, because its data can't be restored.

An object with the annotation `reside.io/keep: "true"`, one that another object controls, and the claims that a
StatefulSet has made from its templates are never unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from reside.sentinel.objects.identity import is_being_deleted, is_kept, is_owned, metadata, split_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from reside.model.stacks import K8sObject

WINDOW_S: Final = 600.0
"""Seconds within which deletions count as simultaneous."""
_MOST: Final = 10
_ALWAYS: Final = 5
"""Number of objects that may be deleted at once in a small cluster: the bootstrap leaves four (the seed's)."""
_PART: Final = 10
_LAST: Final = ("ServiceAccount/", "Role/", "RoleBinding/")
"""Kinds that are deleted last, because a pod that is being deleted may still use them."""
_CLAIM: Final = "PersistentVolumeClaim"
_NAMED: Final = 5
"""Number of names in a reason."""


class Unknown(NamedTuple):
    """A live object to delete: `Kind/name`, and the uid, which no later object of this name has."""

    object: str
    uid: str


@dataclass(frozen=True)
class PruneState:
    """The input of a plan.

    Attributes:
        live: the live objects with our label, by `Kind/name`.
        known: `Kind/name` of the objects that a desired or a stored stack contains.
        stateful_sets: the StatefulSets of these stacks.
        unaccepted: the stacks whose entries were not read or not accepted.
        established: whether the volume knows the cluster.
        recent: number of objects that were deleted without a confirmation within `WINDOW_S`.
        confirmed: uids of the objects whose deletion an operator has confirmed.
    """

    live: Mapping[str, K8sObject]
    known: Collection[str]
    stateful_sets: Iterable[K8sObject] = ()
    unaccepted: Collection[str] = ()
    established: bool = True
    recent: int = 0
    confirmed: Collection[str] = ()


@dataclass(frozen=True)
class PrunePlan:
    """What to do with the unknown objects.

    Attributes:
        confirmed: deleted now, because an operator has confirmed it.
        allowed: deleted now, without a confirmation.
        held: deleted after a confirmation only.
        reasons: why objects are held; empty if none are.
    """

    confirmed: tuple[Unknown, ...] = ()
    allowed: tuple[Unknown, ...] = ()
    held: tuple[Unknown, ...] = ()
    reasons: tuple[str, ...] = field(default=())


def most(total: int) -> int:
    """Return how many of `total` objects may be deleted at once: 10, and of fewer than 100 a tenth, but 5."""
    return min(_MOST, max(_ALWAYS, total // _PART))


def plan(state: PruneState) -> PrunePlan:
    """Return what to do with the unknown objects."""
    found = unknown(state)
    confirmed = tuple(each for each in found if each.uid in state.confirmed)
    others = [each for each in found if each.uid not in state.confirmed]
    if not others:
        return PrunePlan(confirmed)
    claims = [each for each in others if _is_claim(each.object)]
    rest = [each for each in others if not _is_claim(each.object)]
    reasons = _reasons(state, len(rest))
    if reasons:
        return PrunePlan(confirmed, (), tuple(others), reasons)
    if claims:
        reasons = ("a PersistentVolumeClaim is never deleted without a confirmation: its data can't be restored",)
    return PrunePlan(confirmed, tuple(rest), tuple(claims), reasons)


def unknown(state: PruneState) -> list[Unknown]:
    """Return the unknown objects, in the order of their deletion."""
    own = [pattern for each in _stateful_sets(state) for pattern in _claim_names(each)]
    others = {key: state.live[key] for key in state.live if key not in state.known}
    found = [
        Unknown(key, str(metadata(seen).get("uid")))
        for key, seen in others.items()
        if not (is_owned(seen) or is_being_deleted(seen) or is_kept(seen))
        and not (_is_claim(key) and any(name.fullmatch(split_key(key)[1]) for name in own))
    ]
    return sorted(found, key=lambda each: (each.object.startswith(_LAST), each.object))


def _reasons(state: PruneState, count: int) -> tuple[str, ...]:
    """Return why no object may be deleted without a confirmation."""
    reasons = []
    if state.unaccepted:
        names = sorted(state.unaccepted)
        shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
        reasons.append(f"the stacks {shown} were not accepted, so objects of theirs may be unknown: see their reports")
    if not state.established:
        reasons.append("the Sentinel's volume was empty when it started, so it does not know what was applied before")
    limit = most(len(state.live))
    if count + state.recent > limit:
        lately = f", after {state.recent} in the last {WINDOW_S / 60:.0f} minutes" if state.recent else ""
        reasons.append(f"{count} of {len(state.live)} objects would be deleted{lately}; at most {limit} are at once")
    return tuple(reasons)


def _stateful_sets(state: PruneState) -> list[K8sObject]:
    return [*state.stateful_sets, *(state.live[key] for key in state.live if split_key(key)[0] == "StatefulSet")]


def _claim_names(stateful_set: K8sObject) -> list[re.Pattern[str]]:
    """Return patterns of the names of the claims that a StatefulSet makes: `<template>-<set>-<number>`."""
    spec = stateful_set.get("spec")
    templates = spec.get("volumeClaimTemplates") if isinstance(spec, dict) else None
    found = templates if isinstance(templates, list) else []
    names = [metadata(each).get("name") for each in found if isinstance(each, dict)]
    own = metadata(stateful_set).get("name")
    return [re.compile(rf"{re.escape(str(name))}-{re.escape(str(own))}-\d+") for name in names if name and own]


def _is_claim(key: str) -> bool:
    return split_key(key)[0] == _CLAIM
