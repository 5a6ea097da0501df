"""The pods of our workloads that have not ended, by workload: their number and their problems. Plain state, no tasks.

A Deployment that is scaled to 0 does not count pods that are still terminating, and Kubernetes before 1.35 reports
those only with a feature gate. So whether a version has stopped follows from the pods themselves. A pod whose
containers have all ended (`Succeeded`, `Failed`) may be listed for a long time and does not count.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from reside.model.constants import REPLICA_LABEL, VERSION_LABEL
from reside.model.names import workload_name
from reside.model.pod_problem import pod_problem
from reside.sentinel.objects.identity import metadata, stack_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reside.model.kinds import Kind
    from reside.model.stacks import K8sObject

_ENDED: Final = frozenset({"Succeeded", "Failed"})


class _Pod(NamedTuple):
    stack: str
    workload: str
    problem: str | None


class PodCache:
    """The pods by workload (`Kind/name`).

    Listeners are called with the name of a stack when a pod of it comes or goes, or when the problem of one changes.
    """

    def __init__(self) -> None:
        self._pods: dict[str, _Pod] = {}
        self._counts: Counter[str] = Counter()
        self._problems: dict[str, Counter[str]] = {}
        self._listeners: list[Callable[[str], None]] = []
        self.is_listed = False
        """Whether all pods have been listed, so that a workload without pods here has none."""

    def count(self, workload: str) -> int | None:
        """Return the number of pods of a workload; None if it is not known yet."""
        return self._counts[workload] if self.is_listed else None

    def problem(self, workload: str) -> str | None:
        """Return what keeps pods of a workload from running (`reside.model.pod_problem`); None if nothing does."""
        return min(self._problems.get(workload, ()), default=None)

    def workloads_of(self, stack: str) -> set[str]:
        """Return the workloads of a stack that have pods."""
        return {pod.workload for pod in self._pods.values() if pod.stack == stack}

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the stack's name at every change; return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def replace(self, _kind: Kind, objects: Iterable[K8sObject]) -> None:
        """Replace all pods."""
        found = {uid: pod for live in objects if (uid := _uid(live)) and (pod := _pod(live)) is not None}
        self.is_listed = True
        for uid in self._pods.keys() | found.keys():
            self._put(uid, found.get(uid))

    def note(self, event: str, live: K8sObject) -> None:
        """Update the cache from one event of a watch."""
        self._put(_uid(live), None if event == "DELETED" else _pod(live))

    def _put(self, uid: str, pod: _Pod | None) -> None:
        before = self._pods.pop(uid, None)
        if pod is not None:
            self._pods[uid] = pod
        if before == pod:
            return
        for changed, difference in ((before, -1), (pod, 1)):
            if changed is not None:
                self._count(changed, difference)
        for stack in {changed.stack for changed in (before, pod) if changed is not None}:
            self._notify(stack)

    def _count(self, pod: _Pod, difference: int) -> None:
        self._counts[pod.workload] += difference
        if not self._counts[pod.workload]:
            del self._counts[pod.workload]
        if pod.problem is not None:
            problems = self._problems.setdefault(pod.workload, Counter())
            problems[pod.problem] += difference
            if not problems[pod.problem]:
                del problems[pod.problem]
            if not problems:
                del self._problems[pod.workload]

    def _notify(self, stack: str) -> None:
        for listener in list(self._listeners):
            listener(stack)


def _uid(live: K8sObject) -> str:
    return str(metadata(live).get("uid"))


def _pod(live: K8sObject) -> _Pod | None:
    """Return the pod of a workload; None if it has ended or belongs to none of ours."""
    stack, workload = stack_of(live), workload_of(live)
    if stack is None or workload is None or has_ended(live):
        return None
    return _Pod(stack, workload, pod_problem(live))


def has_ended(live: K8sObject) -> bool:
    """Return whether all containers of a pod have ended for good."""
    return (live.get("status") or {}).get("phase") in _ENDED


def workload_of(live: K8sObject) -> str | None:
    """Return the workload (`Kind/name`) that a pod's labels and owner name; None if there is none."""
    labels = metadata(live).get("labels") or {}
    replica, version = labels.get(REPLICA_LABEL), labels.get(VERSION_LABEL)
    if not isinstance(replica, str) or not isinstance(version, str) or not version.isdecimal():
        return None
    owners = {owner.get("kind") for owner in metadata(live).get("ownerReferences") or ()}
    return f"{'Job' if 'Job' in owners else 'Deployment'}/{workload_name(replica, int(version))}"
