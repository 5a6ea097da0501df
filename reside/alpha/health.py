"""The health of versions: since when one should run, whether it ever did, and what happens if it does not. Pure.

A version that should run and has never been healthy has a deadline. It counts from the first report of its workload, so
a Sentinel that is down costs no version its time. After it the version has failed. The load request decided what then
happens: the version stays, and may still become healthy, or the last healthy version before it becomes current again.
A canary that has failed is always taken away (`reside.alpha.canary`).

Invariants: a version that has been healthy once has no deadline any more; its later problems are Kubernetes' to solve.
What was rolled back never becomes current again: only another load does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.alpha.stacks.rollout import UP

if TYPE_CHECKING:
    from reside.model.entities import Replica, ReplicaVersion
    from reside.model.status import VersionStatus

NOT_READY: Final = "its pods have not become ready"
"""The reason of a version whose pods Kubernetes reports no problem of: they are still being created, for example."""
_TRYING: Final[frozenset[VersionStatus]] = frozenset({"starting", "degraded", "error"})
_HEALTHY: Final[frozenset[VersionStatus]] = UP | {"running-outdated"}
"""Statuses of healthy versions, also of one that was replaced before its first report as such was read."""
_WITHOUT_REASON: Final[frozenset[VersionStatus]] = frozenset({"completed", "stopping", "stopped"})


def with_health(
    version: ReplicaVersion,
    status: VersionStatus,
    problem: str | None,
    *,
    should_run: bool,
    is_tried: bool,
    now_ms: int,
) -> ReplicaVersion:
    """Return a version with its new status, and with what follows from it.

    Args:
        version: the version, as it is stored.
        status: the status that follows from live objects alone.
        problem: why it does not run, as Kubernetes or the Sentinel reports it.
        should_run: whether the rollout wants it to have pods.
        is_tried: whether the Sentinel has reported its workload.
        now_ms: the current time.
    """
    if version.rolled_back_to is not None:
        return version.model_copy(update={"status": status, "starting_since": None})
    was_healthy = version.was_healthy or status in _HEALTHY
    since = version.starting_since or (now_ms if is_tried else None)
    if was_healthy or not should_run:
        since = None
    reason = None if status in _WITHOUT_REASON else problem
    seen = version.model_copy(
        update={"status": status, "reason": reason, "starting_since": since, "was_healthy": was_healthy}
    )
    if status not in _TRYING or not has_missed_deadline(seen, now_ms):
        return seen
    late = f"it was not healthy within {version.health.deadline_s} s: {problem or NOT_READY}"
    return seen.model_copy(update={"status": "error", "reason": late})


def remaining_ms(version: ReplicaVersion, now_ms: int) -> int | None:
    """Return the time that a version has left to become healthy, at least 0; None if it has no deadline."""
    if version.starting_since is None:
        return None
    return max(0, version.starting_since + version.health.deadline_s * 1000 - now_ms)


def has_missed_deadline(version: ReplicaVersion, now_ms: int) -> bool:
    """Return whether a version has a deadline, and it has passed."""
    return remaining_ms(version, now_ms) == 0


def next_deadline_s(replica: Replica, now_ms: int) -> float | None:
    """Return the seconds until the next version misses its deadline; None if none is left."""
    left = [found for version in replica.versions if (found := remaining_ms(version, now_ms))]
    return min(left) / 1000 if left else None


def roll_back_target(replica: Replica, now_ms: int) -> int | None:
    """Return the id of the version that becomes current because the current one has failed; None if it stays."""
    if replica.current_version is None or replica.info.kind == "oneshot":
        return None
    current = replica.version(replica.current_version)
    if current.rolled_back_to is not None:  # an Alpha died before it made that version current
        return current.rolled_back_to
    has_failed = current.status == "error" and has_missed_deadline(current, now_ms)
    if not has_failed or current.health.on_failure != "roll-back":
        return None
    healthy = [replica.last_healthy_version or 0, *(v.id for v in replica.versions if is_target(v))]
    return max((number for number in healthy if 0 < number < current.id), default=None)


def is_target(version: ReplicaVersion) -> bool:
    """Return whether a later version may be rolled back to this one: it was healthy, and not rolled back itself."""
    return version.was_healthy and version.rolled_back_to is None
