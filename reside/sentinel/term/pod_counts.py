"""How many pods the workloads of a stack have, for its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reside.model.constants import REPLICA_LABEL, VERSION_LABEL
from reside.sentinel.guard.pods import has_ended
from reside.sentinel.objects.identity import metadata, split_key

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject
    from reside.sentinel.guard.guard import Guard

_TEMPLATED: Final = frozenset({"Deployment", "StatefulSet", "Job"})
"""Kinds of objects with a template of pods."""


class PodCounts:
    """Counts pods during one term.

    Invariant: a workload that is scaled down has no pod only if a list of its pods, made after that was observed, says
    so. The watch of pods may be behind that of workloads.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._confirmed: dict[str, dict[str, Any]] = {}

    async def of_stack(self, stack: str) -> dict[str, int]:
        """Return the number of pods of the stack's workloads by `Kind/name`, as far as it is known.

        Raises:
            ClusterUnavailable, ClusterRefused: a list of pods failed.
        """
        guard = self._guard
        stored = guard.store.stacks.get(stack)
        confirmed: dict[str, Any] = {}
        found = {}
        held = stored.keys() if stored else frozenset()
        for key in guard.pods.workloads_of(stack) | held | guard.cache.of_stack(stack):
            count, live = guard.pods.count(key), guard.cache.get(key) if split_key(key)[0] in _TEMPLATED else None
            labels = _pod_labels(live)
            if count == 0 and live is not None and labels and _is_scaled_down(live):
                generation = metadata(live).get("generation")
                if self._confirmed.get(stack, {}).get(key) != generation:
                    count = sum(not has_ended(pod) for pod in await guard.api.list_pods(labels))
                if count == 0:
                    confirmed[key] = generation
            if count or (count == 0 and labels):
                found[key] = count
        self._confirmed[stack] = confirmed
        if not confirmed:
            del self._confirmed[stack]
        return found


def _pod_labels(live: K8sObject | None) -> dict[str, str]:
    """Return the labels of the pods of a version's workload; empty for other objects."""
    template = ((live or {}).get("spec") or {}).get("template") or {}
    labels = metadata(template).get("labels") or {}
    return {name: str(labels[name]) for name in (REPLICA_LABEL, VERSION_LABEL)} if VERSION_LABEL in labels else {}


def _is_scaled_down(live: K8sObject) -> bool:
    """Return whether the controller has observed that a Deployment or Job should have no pods."""
    spec, status = live.get("spec") or {}, live.get("status") or {}
    if live.get("kind") == "Job":
        return bool(spec.get("suspend")) and not status.get("active")
    observed = status.get("observedGeneration", 0) >= metadata(live).get("generation", 0)
    return spec.get("replicas") == 0 and observed and not status.get("replicas")
