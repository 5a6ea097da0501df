"""The state of a live object: whether Kubernetes has carried out what is desired. Pure.

The rules are those of kstatus, by which Flux judges objects, with these differences: a controller that can't create
pods (ReplicaFailure, such as an exceeded quota) and a claim that lost its volume have failed; a Job whose pods are not
ready is in progress; and what is in progress has the reason of its pods and events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeGuard, get_args

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

State = Literal["current", "in-progress", "failed", "terminating"]

_LONGEST: Final = 300
"""Characters of a reason that are kept."""


def is_state(value: Any) -> TypeGuard[State]:
    """Return whether a value is the name of a state."""
    return value in get_args(State)


class ObjectState(NamedTuple):
    """The state of an object, and why it is not current; None if it is."""

    state: State
    reason: str | None = None


CURRENT: Final = ObjectState("current")


def object_state(live: Mapping[str, Any], trouble: str | None = None) -> ObjectState:
    """Return the state of a live object of one of the thirteen kinds.

    Args:
        live: the object, as the Kubernetes API serves it.
        trouble: what keeps it from being current, as its pods or events say it (`reside.model.pod_problem`).
    """
    meta, status = live.get("metadata") or {}, live.get("status") or {}
    if "deletionTimestamp" in meta:
        finalizers = ", ".join(map(str, meta.get("finalizers") or ()))
        return ObjectState("terminating", f"waits for the finalizers {finalizers}" if finalizers else None)
    observed = status.get("observedGeneration")
    if observed is not None and observed < meta.get("generation", 0):
        return ObjectState("in-progress", "the change is not observed yet")
    rule = _RULES.get(str(live.get("kind")))
    found = rule(live.get("spec") or {}, status) if rule is not None else CURRENT
    if found.state == "in-progress" and trouble is not None:
        return ObjectState("in-progress", _line(trouble))
    return found


def _deployment(spec: Mapping[str, Any], status: Mapping[str, Any]) -> ObjectState:
    failure, progressing = _condition(status, "ReplicaFailure"), _condition(status, "Progressing")
    if _is_true(failure) or progressing.get("reason") == "ProgressDeadlineExceeded":
        return ObjectState("failed", _said(failure) if _is_true(failure) else _said(progressing))
    return _first(_deployment_waits(spec, status))


def _deployment_waits(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[str | None]:
    wanted, updated = _number(spec, "replicas", 1), _number(status, "updatedReplicas")
    available, progressing = _condition(status, "Available"), _condition(status, "Progressing")
    yield from _unseen(status)
    yield from _fewer(_number(status, "replicas"), wanted, "exist")
    yield from _fewer(updated, wanted, "are updated")
    yield from _more(_number(status, "replicas"), wanted)
    yield from _fewer(_number(status, "availableReplicas"), updated, "are available")
    yield from _fewer(_number(status, "readyReplicas"), wanted, "are ready")
    if progressing and progressing.get("reason") != "NewReplicaSetAvailable" and not spec.get("paused"):
        yield _said(progressing)
    if wanted and not _is_true(available):
        yield _said(available) or "it is not available"


def _stateful_set(spec: Mapping[str, Any], status: Mapping[str, Any]) -> ObjectState:
    return _first(_stateful_set_waits(spec, status))


def _stateful_set_waits(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Iterator[str | None]:
    wanted, updated = _number(spec, "replicas", 1), _number(status, "updatedReplicas")
    strategy = spec.get("updateStrategy") or {}
    partition = _number(strategy.get("rollingUpdate") or {}, "partition")
    yield from _unseen(status)
    yield from _fewer(_number(status, "replicas"), wanted, "exist")
    yield from _fewer(_number(status, "readyReplicas"), wanted, "are ready")
    yield from _more(_number(status, "replicas"), wanted)
    if strategy.get("type") == "OnDelete":
        return
    if partition:
        yield from _fewer(updated, max(0, wanted - partition), "are updated")
    elif wanted and status.get("currentRevision") != status.get("updateRevision"):
        yield f"{updated} of {wanted} pods are updated"


def _job(spec: Mapping[str, Any], status: Mapping[str, Any]) -> ObjectState:
    failed = _condition(status, "Failed")
    if _is_true(failed):
        return ObjectState("failed", _said(failed))
    if _is_true(_condition(status, "Complete")) or spec.get("suspend"):
        return CURRENT
    return _first(_job_waits(status))


def _job_waits(status: Mapping[str, Any]) -> Iterator[str]:
    active, done = _number(status, "active"), _number(status, "succeeded") + _number(status, "failed")
    if not status.get("startTime"):
        yield "it has not started"
    elif not active and not done:
        yield "it has no pods yet"
    elif active and status.get("ready") == 0:
        yield f"0 of {active} pods are ready"


def _claim(spec: Mapping[str, Any], status: Mapping[str, Any]) -> ObjectState:
    phase = status.get("phase")
    if phase == "Lost":
        return ObjectState("failed", f"its volume {spec.get('volumeName')} is lost")
    if phase != "Bound":
        return _waits("it is not bound to a volume")
    resized = [_condition(status, name) for name in ("Resizing", "FileSystemResizePending")]
    return next((_waits(_said(found) or "it is resized") for found in resized if _is_true(found)), CURRENT)


def _service(spec: Mapping[str, Any], status: Mapping[str, Any]) -> ObjectState:
    if spec.get("type") != "LoadBalancer":
        return CURRENT
    return CURRENT if (status.get("loadBalancer") or {}).get("ingress") else _waits("it has no address yet")


def _route(_: Mapping[str, Any], status: Mapping[str, Any]) -> ObjectState:
    parents = status.get("parents") or ()
    for parent in parents:
        for name in ("Accepted", "ResolvedRefs"):
            condition = _condition(parent, name)
            if condition.get("status") == "False":
                return ObjectState("failed", _said(condition) or f"{name} is false")
    return CURRENT if parents else _waits("no gateway has accepted it yet")


_RULES: Final[dict[str, Callable[[Mapping[str, Any], Mapping[str, Any]], ObjectState]]] = {
    "Deployment": _deployment,
    "HTTPRoute": _route,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "PersistentVolumeClaim": _claim,
    "Service": _service,
}
"""Kind → rule. Objects of the other kinds are current as soon as they exist."""


def _waits(reason: str | None) -> ObjectState:
    return ObjectState("in-progress", reason)


def _first(reasons: Iterator[str | None]) -> ObjectState:
    """Return the state of an object that waits for the first of these reasons, and is current if there is none."""
    return next((_waits(reason) for reason in reasons), CURRENT)


def _unseen(status: Mapping[str, Any]) -> Iterator[str]:
    if "observedGeneration" not in status:
        yield "the controller has not seen it yet"


def _fewer(found: int, wanted: int, what: str) -> Iterator[str]:
    if found < wanted:
        yield f"{found} of {wanted} pods {what}"


def _more(found: int, wanted: int) -> Iterator[str]:
    if found > wanted:
        yield f"{found - wanted} pods are to end"


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found = (each for each in status.get("conditions") or () if each.get("type") == kind)
    return next(found, {})


def _is_true(condition: Mapping[str, Any]) -> bool:
    return condition.get("status") == "True"


def _said(condition: Mapping[str, Any]) -> str | None:
    """Return reason and message of a condition."""
    parts = [str(condition[name]) for name in ("reason", "message") if condition.get(name)]
    return _line(": ".join(parts)) if parts else None


def _line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]


def _number(values: Mapping[str, Any], name: str, default: int = 0) -> int:
    found = values.get(name)
    return found if isinstance(found, int) else default
