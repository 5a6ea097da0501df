"""Tell repairs as Kubernetes events about the repaired objects, and failed applies by events about what failed.

An object has at most one event for each reason: a further repair counts it up and replaces its message. The event of an
object is written once in `OBJECT_PAUSE_S` at most, and all events together `PER_SECOND` times a second, after a burst.
So neither a fight nor an account that has many objects repaired floods the API server. Events are not repeated after a
restart: an event that is lost costs nothing but itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import socket
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from prometheus_client import Counter

from reside.common.workqueue import Verdict, WorkQueue
from reside.model.constants import FIELD_MANAGER
from reside.sentinel.backoff import REPAIR_BACKOFF
from reside.sentinel.errors import ClusterUnavailable
from reside.sentinel.objects.identity import live_key, metadata

if TYPE_CHECKING:
    from reside.model.stacks import K8sObject

Reason = Literal["Reverted", "Restored", "Fight", "ApplyFailed"]
_WARNINGS: Final = ("Fight", "ApplyFailed")
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9-]+")
"""Characters that names of objects may contain, such as the colon of a Role's, and parts of names of events may not."""

OBJECT_PAUSE_S: Final = 10.0
PER_SECOND: Final = 5.0
_BURST: Final = 50
_MOST: Final = 500
"""Number of events that are remembered, and that may wait. What is forgotten is counted from one again."""
_LONGEST: Final = 1000
"""Characters of a message that are kept."""
_ATTEMPTS: Final = 3
DROPPED = Counter(
    "reside_sentinel_repair_events_dropped_total",
    "Kubernetes events about repairs and failed applies that were not written.",
)


class EventApi(Protocol):
    """The part of the Kubernetes API that is used."""

    namespace: str

    async def put_event(self, event: K8sObject) -> None:
        """Create an event, or replace it."""


@dataclass(frozen=True)
class _Recorded:
    """An event, as it is to be written."""

    about: dict[str, Any]
    reason: Reason
    message: str
    first: datetime
    last: datetime
    count: int = 1
    written: float | None = None
    """When it was written last, by the clock of the event loop."""


class RepairEvents:
    """Writes events about repairs and failed applies.

    Args:
        api: the Kubernetes API.
    """

    def __init__(self, api: EventApi) -> None:
        self._api = api
        self._recorded: dict[str, _Recorded] = {}
        self._waiting: set[str] = set()
        """Events that are to be written."""
        self._full_at = 0.0
        """When the next event would be due if there were no burst."""
        self.queue = WorkQueue(
            "repair events", self._write, workers=1, backoff=REPAIR_BACKOFF, judge=_judge, attempts=_ATTEMPTS
        )

    def tell(self, live: K8sObject, reason: Reason, message: str) -> None:
        """Write an event about a live object soon, or a desired one; drop it if too many others wait."""
        meta, clock = metadata(live), datetime.now(UTC)
        name = f"{live_key(live)} {meta.get('uid')} {reason}"
        if name not in self._waiting and len(self._waiting) >= _MOST:
            DROPPED.inc()
            return
        before = self._recorded.pop(name, None)
        about = {
            "apiVersion": live.get("apiVersion"),
            "kind": live.get("kind"),
            "namespace": self._api.namespace,
            "name": meta.get("name"),
        }
        about |= {"uid": meta["uid"]} if meta.get("uid") else {}  # there may be no live object
        recorded = _Recorded(about, reason, message[:_LONGEST], clock, clock)
        if before is not None:
            recorded = replace(recorded, first=before.first, count=before.count + 1, written=before.written)
        self._recorded[name] = recorded
        if name not in self._waiting:
            self._waiting.add(name)
            self.queue.add(name, after=self._pause(recorded.written))
        if len(self._recorded) > _MOST:
            del self._recorded[next(each for each in self._recorded if each not in self._waiting)]

    async def run(self) -> None:
        """Write events until cancelled."""
        await self.queue.run()

    def _pause(self, written: float | None) -> float:
        """Return the seconds until an event may be written."""
        now = asyncio.get_running_loop().time()
        self._full_at = max(self._full_at, now) + 1 / PER_SECOND
        of_all = self._full_at - now - _BURST / PER_SECOND
        return max(0.0, of_all, (written or now - OBJECT_PAUSE_S) + OBJECT_PAUSE_S - now)

    async def _write(self, name: str) -> None:
        self._waiting.discard(name)
        recorded = self._recorded.get(name)
        if recorded is None:
            return  # it was tried before, and is forgotten
        await self._api.put_event(_event(name, recorded))
        if (present := self._recorded.get(name)) is not None:
            self._recorded[name] = replace(present, written=asyncio.get_running_loop().time())


def _judge(error: Exception) -> Verdict:
    """Return what the queue does after an error: an event that is refused would be refused again."""
    if isinstance(error, ClusterUnavailable):
        return Verdict.RETRY
    DROPPED.inc()
    return Verdict.WAIT


def _event(name: str, recorded: _Recorded) -> K8sObject:
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    prefix = _NOT_IN_NAMES.sub("-", str(recorded.about["name"]))[:200].strip("-") or "object"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{prefix}.{digest}", "namespace": recorded.about["namespace"]},
        "involvedObject": recorded.about,
        "reason": recorded.reason,
        "message": recorded.message,
        "type": "Warning" if recorded.reason in _WARNINGS else "Normal",
        "count": recorded.count,
        "firstTimestamp": _time(recorded.first),
        "lastTimestamp": _time(recorded.last),
        "source": {"component": FIELD_MANAGER, "host": socket.gethostname()},
        "reportingComponent": FIELD_MANAGER,
        "reportingInstance": socket.gethostname(),
    }


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
