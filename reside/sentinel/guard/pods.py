"""The pods of our workloads that have not ended, by workload: their number and their problems. Plain state, no tasks.

A Deployment that is scaled to 0 does not count pods that are still terminating, and Kubernetes before 1.35 reports
those only with a feature gate. So whether a version has stopped follows from the pods themselves. A pod whose
containers have all ended (`Succeeded`, `Failed`) may be listed for a long time and does not count.

Pods of a version are those with its labels, and are counted. Pods of other workloads are those that the workload
controls; only their problems are of interest.

Which probe of a pod fails, and why, is known from events only (`FailingProbes`). It is the problem of the pod until the
pod is ready or ends, unless the pod itself has another one.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from reside.common.turns import in_rounds
from reside.model.constants import REPLICA_LABEL, VERSION_LABEL
from reside.model.kinds import POD
from reside.model.names import workload_name
from reside.model.pod_problem import failing_probe, pod_problem
from reside.sentinel.objects.identity import is_ours, metadata, stack_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reside.model.kinds import Kind
    from reside.model.stacks import K8sObject

_TEMPLATE_HASH: Final = "pod-template-hash"
"""The label of a Deployment's pods that ends the name of their ReplicaSet."""
_AT_ONCE: Final = 100
"""Pods of a list that are noted in one round of the event loop."""
_ENDED: Final = frozenset({"Succeeded", "Failed"})


class _Pod(NamedTuple):
    stack: str | None
    """The stack that its label names."""
    workload: str
    problem: str | None
    """What keeps it from running, as its status says it."""
    is_counted: bool = True
    """Whether it is a pod of a version."""
    probe: str | None = None
    """Its failing probe."""

    @property
    def reported(self) -> str | None:
        """What is reported of it."""
        return self.problem or self.probe


class PodCache:
    """The pods by workload (`Kind/name`).

    Listeners are called with the name of a stack when a pod of it comes or goes, or when the problem of one changes.

    Args:
        holder: returns the stack that holds a workload, for pods without the label of a stack.
    """

    def __init__(self, holder: Callable[[str], str | None] = lambda _: None) -> None:
        self._holder = holder
        self._pods: dict[str, _Pod] = {}
        self._workloads: dict[str, Counter[str]] = {}
        self._unready: set[str] = set()
        self._probes: dict[str, str] = {}
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
        return set(self._workloads.get(stack, ()))

    def listen(self, listener: Callable[[str], None]) -> Callable[[], None]:
        """Call `listener` with the stack's name at every change; return a function that unsubscribes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def load(self, _kind: Kind, objects: Iterable[K8sObject]) -> None:
        """Replace all pods, in several rounds of the event loop."""
        found = {_uid(live): live for live in objects}
        async for uid in in_rounds(self._pods.keys() | self._probes.keys() | found.keys(), _AT_ONCE):
            self._see(uid, found.get(uid))
        for uid in self._probes.keys() - found.keys():  # an event came meanwhile
            del self._probes[uid]
        self.is_listed = True

    def note(self, event: str, live: K8sObject) -> None:
        """Update the cache from one event of a watch."""
        self._see(_uid(live), None if event == "DELETED" else live)

    def note_failing_probe(self, uid: str, failure: str) -> None:
        """Note that a probe of a pod fails. Ignore a pod that is ready, that ends, or that does not exist."""
        if self.is_listed and uid not in self._unready:
            return
        self._probes[uid] = failure
        pod = self._pods.get(uid)
        if pod is not None:
            self._put(uid, pod._replace(probe=failure))

    def _see(self, uid: str, live: K8sObject | None) -> None:
        """Update one pod; what its probes did is forgotten when it is ready, ends or is gone."""
        pod = None if live is None else _pod(live)
        if live is None or pod is None or _is_ready(live) or "deletionTimestamp" in metadata(live):
            self._unready.discard(uid)
            self._probes.pop(uid, None)
        else:
            self._unready.add(uid)
            pod = pod._replace(probe=self._probes.get(uid))
        self._put(uid, pod)

    def _put(self, uid: str, pod: _Pod | None) -> None:
        before = self._pods.pop(uid, None)
        if pod is not None:
            self._pods[uid] = pod
        if before == pod:
            return
        for changed, difference in ((before, -1), (pod, 1)):
            if changed is not None:
                self._count(changed, difference)
        changes = [changed for changed in (before, pod) if changed is not None]
        for stack in {changed.stack or self._holder(changed.workload) for changed in changes}:
            if stack is not None:
                self._notify(stack)

    def _count(self, pod: _Pod, difference: int) -> None:
        if pod.is_counted and pod.stack is not None:
            of_stack = self._workloads.setdefault(pod.stack, Counter())
            of_stack[pod.workload] += difference
            if not of_stack[pod.workload]:
                del of_stack[pod.workload]
            if not of_stack:
                del self._workloads[pod.stack]
            self._counts[pod.workload] += difference
            if not self._counts[pod.workload]:
                del self._counts[pod.workload]
        if pod.reported is not None:
            problems = self._problems.setdefault(pod.workload, Counter())
            problems[pod.reported] += difference
            if not problems[pod.reported]:
                del problems[pod.reported]
            if not problems:
                del self._problems[pod.workload]

    def _notify(self, stack: str) -> None:
        for listener in list(self._listeners):
            listener(stack)


class FailingProbes:
    """Passes what events say about failing probes on to the pods. It keeps nothing itself."""

    def __init__(self, pods: PodCache) -> None:
        self._pods = pods

    async def load(self, kind: Kind, objects: Iterable[K8sObject]) -> None:
        """Pass all events on, the latest last."""
        self.replace(kind, objects)

    def replace(self, _kind: Kind, objects: Iterable[K8sObject]) -> None:
        """Pass all events on, the latest last."""
        for live in sorted(objects, key=lambda event: str(event.get("lastTimestamp"))):
            self.note("ADDED", live)

    def note(self, event: str, live: K8sObject) -> None:
        """Pass an event on. Kubernetes deletes old events, which says nothing about the pod."""
        failure, pod = failing_probe(live), live.get("involvedObject") or {}
        if event != "DELETED" and failure is not None and pod.get("kind") == POD.kind:
            self._pods.note_failing_probe(str(pod.get("uid")), failure)


def _is_ready(live: K8sObject) -> bool:
    conditions = (live.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)


def _uid(live: K8sObject) -> str:
    return str(metadata(live).get("uid"))


def _pod(live: K8sObject) -> _Pod | None:
    """Return the pod of a workload; None if it has ended or belongs to none of ours."""
    if has_ended(live):
        return None
    stack, version = stack_of(live), workload_of(live)
    if stack is not None and version is not None and is_ours(live):
        return _Pod(stack, version, pod_problem(live))
    workload = _controller(live)
    return None if workload is None else _Pod(stack, workload, pod_problem(live), is_counted=False)


def has_ended(live: K8sObject) -> bool:
    """Return whether all containers of a pod have ended for good."""
    return (live.get("status") or {}).get("phase") in _ENDED


def _controller(live: K8sObject) -> str | None:
    """Return the workload (`Kind/name`) that controls a pod; None if it is of no kind that a stack can contain."""
    owners = (owner for owner in metadata(live).get("ownerReferences") or () if owner.get("controller"))
    owner: dict[str, object] = next(owners, {})
    kind, name = owner.get("kind"), owner.get("name")
    if not isinstance(name, str):
        return None
    suffix = f"-{(metadata(live).get('labels') or {}).get(_TEMPLATE_HASH)}"
    if kind == "ReplicaSet" and name.endswith(suffix):
        return f"Deployment/{name.removesuffix(suffix)}"
    return f"{kind}/{name}" if kind in ("Job", "StatefulSet") else None


def workload_of(live: K8sObject) -> str | None:
    """Return the workload (`Kind/name`) of a version that a pod's labels and owner name; None if there is none."""
    labels = metadata(live).get("labels") or {}
    replica, version = labels.get(REPLICA_LABEL), labels.get(VERSION_LABEL)
    if not isinstance(replica, str) or not isinstance(version, str) or not version.isdecimal():
        return None
    owners = {owner.get("kind") for owner in metadata(live).get("ownerReferences") or ()}
    return f"{'Job' if 'Job' in owners else 'Deployment'}/{workload_name(replica, int(version))}"
