"""Compose the report of a stack from desired, stored and live objects. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from reside.model.object_state import object_state
from reside.model.reports import ObjectReport, StackReport
from reside.model.stacks import DesiredStack, object_key
from reside.sentinel.objects.identity import is_being_deleted, metadata, stack_of
from reside.sentinel.objects.live import reported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reside.model.reports import ApplyProgress, ObjectStatus
    from reside.model.stacks import K8sObject
    from reside.sentinel.store.stacks import StoredStack


@dataclass(frozen=True)
class Fault:
    """Why the last attempt to apply a stack failed, and the object that caused it, if it is known."""

    message: str
    object: str | None = None


@dataclass(frozen=True)
class StackState:
    """The input of a report.

    Attributes:
        name: name of the stack.
        desired: the latest desired stack that could be read.
        stored: the stack that was validated and applied last.
        fault: why the desired stack is not applied.
        problems: why objects can't be repaired, by `Kind/name`.
        live: the live objects by `Kind/name`.
        pods: the number of pods of the stack's workloads, by `Kind/name`, as far as it is known.
        pod_problem: returns what keeps pods of a workload (`Kind/name`) from running.
        drift: returns what others do to an object (`Kind/name`).
        reverted: returns what others have changed in it lately, and what was changed back.
        advice: a sentence for each violation of an advisory rule of the policy by the desired stack.
        progress: how far the operation on the stack is.
        trouble: returns what events say keeps a live object from being current.
    """

    name: str
    desired: DesiredStack | None
    stored: StoredStack | None
    fault: Fault | None
    problems: Mapping[str, str]
    live: Mapping[str, K8sObject]
    pods: Mapping[str, int] = field(default_factory=dict)
    pod_problem: Callable[[str], str | None] = lambda _key: None
    drift: Callable[[str], tuple[str, ...]] = lambda _key: ()
    reverted: Callable[[str], tuple[str, ...]] = lambda _key: ()
    advice: tuple[str, ...] = ()
    progress: ApplyProgress | None = None
    trouble: Callable[[str, K8sObject], str | None] = lambda _key, _live: None


def compose(state: StackState) -> StackReport:
    """Return the report of a stack. Its objects are those desired, applied, not yet deleted, and those with pods."""
    revision = state.stored.applied if state.stored and state.stored.settled else None
    applied = state.stored.by_key() if state.stored else {}
    if state.desired is not None and state.desired.revision == revision:
        desired = applied  # equal revisions have equal objects, and most of these are not looked at
    else:
        desired = {object_key(obj): obj for obj in state.desired.objects} if state.desired else {}
    remaining = {key for key, live in state.live.items() if stack_of(live) == state.name}
    objects = {
        key: _object(state, key, is_new=desired is not applied and key in desired and desired[key] != applied.get(key))
        for key in sorted(desired.keys() | applied.keys() | remaining | {key for key, n in state.pods.items() if n})
    }
    return StackReport(revision, state.fault.message if state.fault else None, objects, state.advice, state.progress)


def _object(state: StackState, key: str, *, is_new: bool) -> ObjectReport:
    found = state.live.get(key)
    live = reported(found) if found is not None else None
    if live is None and state.stored is not None:
        live = state.stored.finished.get(key)
    pods, problem = state.pods.get(key), state.pod_problem(key)
    trouble = None if live is None else problem or state.trouble(key, live)
    status_of, reason = (None, None) if live is None else object_state(live, trouble)
    whole = ObjectReport(
        "error", live, pods=pods, drift=state.drift(key), state=status_of, reason=reason, reverted=state.reverted(key)
    )
    if key in state.problems:
        return replace(whole, error=state.problems[key])
    if is_new and state.fault is not None and state.fault.object in (None, key):
        return replace(whole, error=state.fault.message)
    status: ObjectStatus = "requested" if is_new or live is None else "updated"
    event = trouble if whole.state == "in-progress" else None
    return replace(whole, status=status, problem=_deletion(found) or problem or event)


def _deletion(live: K8sObject | None) -> str | None:
    """Return what an object waits for that is being deleted and does not end; None if it is not."""
    finalizers = metadata(live).get("finalizers") if live is not None and is_being_deleted(live) else None
    return f"being deleted; its finalizers are {', '.join(map(str, finalizers))}" if finalizers else None


_SAYS_NOTHING: Final = frozenset({"lastTransitionTime", "lastUpdateTime", "lastProbeTime", "lastHeartbeatTime"})
"""Members of live objects whose change alone tells a reader of a report nothing."""


_FAST: Final[dict[str, None]] = {"drift": None, "state": None, "reason": None, "reverted": None}
"""Members of reports of objects that may change at any pace, such as with each pod of a rollout."""


def differs_in_pace_only(present: Any, desired: Any) -> bool:
    """Return whether two reports of an object differ only in members that may change at any pace."""
    if present == desired or not (isinstance(present, dict) and isinstance(desired, dict)):
        return False
    return present | _FAST == desired | _FAST


def says_more(present: Any, desired: Any) -> bool:
    """Return whether a report of an object differs from another one in what readers use, and not only in times."""
    return bool(_without_noise(present) != _without_noise(desired))


LIVE_S: Final = 1.0
"""Pause between two changes of what a report shows of one live object, or of drift and state, if nothing else has."""
QUIET_S: Final = 60.0
"""Pause between two such changes that differ in times only."""


def pause_s(present: Any, desired: Any) -> float:
    """Return the seconds that must lie between two writes of what is live of an object; 0: it is written at once."""
    if not (isinstance(present, dict) and isinstance(desired, dict)):
        return 0.0
    return LIVE_S if says_more(present, desired) else QUIET_S


def _without_noise(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_noise(item) for key, item in value.items() if key not in _SAYS_NOTHING}
    return [_without_noise(item) for item in value] if isinstance(value, list) else value


def shows_live(present: Mapping[str, Any]) -> bool:
    """Return whether the members of a report map contain what is live: an earlier release has written it."""
    return any(isinstance(each, dict) and each.get("live") is not None for each in present.values())


def difference(present: Mapping[str, Any], desired: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the members to set and the members to delete so that `present` becomes `desired`."""
    absent = object()
    to_set = {name: value for name, value in desired.items() if present.get(name, absent) != value}
    return to_set, [name for name in present if name not in desired]
