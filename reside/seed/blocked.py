"""Faults that keep pods from being created, and that waiting does not cure: a quota, a missing StorageClass.

A wait ends with such a fault once it has lasted a while, instead of with its deadline.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Final

from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import Event, PersistentVolumeClaim, ResourceQuota
from lightkube.utils.quantity import parse_quantity

from reside.access.cures import with_cure
from reside.model.constants import REPLICA_LABEL
from reside.model.errors import NotReady
from reside.model.object_trouble import object_trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    import lightkube

PATIENCE_S: Final = 15.0
"""Seconds for which a fault may last: a quota can be used up by pods that are being replaced."""
_NO_CLASS: Final = re.compile(r"storageclass\S* \S+ not found|no storage class is set")
_QUOTA: Final = re.compile(r"(?P<how>exceeded|failed) quota: (?P<name>[^\s,:]+)")


class Blocked:
    """The fault that a wait has seen, and since when.

    Args:
        name: what is waited for.
        deadline: of the wait, in seconds.
        now: a monotonic clock.
    """

    def __init__(self, name: str, deadline: float, now: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._patience = min(PATIENCE_S, deadline / 2)
        self._now = now
        self._fault: str | None = None
        self._since = 0.0

    def check(self, fault: str | None) -> None:
        """Note the fault that is there now.

        Raises:
            NotReady: it has lasted too long.
        """
        if fault != self._fault:
            self._fault, self._since = fault, self._now()
        if fault is not None and self._now() - self._since >= self._patience:
            raise NotReady(with_cure(f"{self._name} gets no pod: {fault}"))


async def refused_pods(client: lightkube.AsyncClient, name: str) -> str | None:
    """Return why Kubernetes refused a pod of a StatefulSet the last time; None if it did not.

    Only events tell it, which remain after the fault: `is_lasting` says whether it is still there.
    """
    fields = {"involvedObject.kind": "StatefulSet", "involvedObject.name": name, "reason": "FailedCreate"}
    found = [event.to_dict() async for event in client.list(Event, fields=dict(fields))]
    return object_trouble(max(found, key=lambda event: event.get("lastTimestamp") or "")) if found else None


async def is_lasting(client: lightkube.AsyncClient, refusal: str) -> bool:
    """Return whether a pod is refused because of a quota that still refuses it."""
    named = _QUOTA.search(refusal)
    if named is None:
        return False
    async for quota in client.list(ResourceQuota):
        if quota.metadata and quota.metadata.name == named["name"]:
            return named["how"] == "failed" or _is_used_up(quota)
    return False


async def refused_deployment(client: lightkube.AsyncClient, replica: str) -> str | None:
    """Return why Kubernetes refuses the pods of a replica; None if it does not."""
    async for deployment in client.list(Deployment, labels={REPLICA_LABEL: replica}):
        for condition in (deployment.status.conditions if deployment.status else None) or []:
            if condition.type == "ReplicaFailure" and condition.status == "True":
                return condition.message or condition.reason
    return None


async def unbound_claim(client: lightkube.AsyncClient, name: str) -> str | None:
    """Return why no volume is bound to a claim: its StorageClass does not exist; None if that is not so.

    Events remain after their fault: only the last one counts.
    """
    fields = {"involvedObject.kind": "PersistentVolumeClaim", "involvedObject.name": name}
    found = [event async for event in client.list(Event, fields=dict(fields))]
    message = (max(found, key=_last).message if found else None) or ""
    if _NO_CLASS.search(message) is None:
        return None
    claim = await client.get(PersistentVolumeClaim, name)
    if claim.status is not None and claim.status.phase == "Bound":
        return None
    return f"{message}: create the StorageClass, or delete the claim {name} and name another"


def _last(event: Event) -> float:
    """Return when an event was last seen."""
    last = event.lastTimestamp or event.eventTime or event.firstTimestamp
    return last.timestamp() if last is not None else 0.0


def _is_used_up(quota: ResourceQuota) -> bool:
    """Return whether a quota leaves less than a pod of the platform needs."""
    hard, used = (quota.status.hard, quota.status.used) if quota.status else (None, None)
    left = {each: _number(limit) - _number((used or {}).get(each, "0")) for each, limit in (hard or {}).items()}
    return any(each in left and left[each] < _number(least) for each, least in _NEEDS.items())


_NEEDS: Final = {
    "pods": "1",
    "count/pods": "1",
    "cpu": "100m",
    "requests.cpu": "100m",
    "memory": "64Mi",
    "requests.memory": "64Mi",
    "limits.memory": "512Mi",
}
"""The least that a pod of the platform takes of a quota (`reside.seed.platform`)."""


def _number(quantity: str) -> float:
    return float(parse_quantity(quantity) or 0)
