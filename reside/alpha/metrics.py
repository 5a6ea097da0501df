"""Metrics of Alpha, on the metrics page of its pod: whether it leads, how far its queues lag, what waits for people.

The numbers of a queue are read when the page is read. All of them are 0 while another Alpha leads.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from prometheus_client import Gauge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reside.common.workqueue import WorkQueue

LEADER = Gauge(
    "reside_alpha_leader",
    "1 while this Alpha leads; the sum over all Alphas is 1 but for a change of leader.",
)
REQUESTS = Gauge(
    "reside_alpha_requests",
    "Load requests that are not finished; `requires-approval` waits for people.",
    ["status"],
)
QUEUE_KEYS = Gauge(
    "reside_alpha_queue_keys",
    "Keys of the queues `alpha` (replicas) and `requests`: `waiting`, `running`, `failing`.",
    ["queue", "state"],
)
QUEUE_AGE = Gauge(
    "reside_alpha_queue_age_seconds",
    "Time for which the oldest key has been due; it grows if Alpha can't keep up.",
    ["queue"],
)
_STATES: Final = ("waiting", "running", "failing")
_STATUSES: Final = ("validating", "requires-approval", "approved")


class OpenRequests:
    """The load requests that are not finished, counted by status."""

    def __init__(self) -> None:
        self._status: dict[int, str] = {}
        self._show()

    def note(self, number: int, status: str | None) -> None:
        """Note the status of a request; None: it is finished."""
        if status is None:
            self._status.pop(number, None)
        else:
            self._status[number] = status
        self._show()

    def _show(self) -> None:
        counts = Counter(self._status.values())
        for status in _STATUSES:
            REQUESTS.labels(status).set(counts[status])


@contextmanager
def leading(**queues: WorkQueue) -> Iterator[OpenRequests]:
    """Show the queues of a term, by name, while the block is open."""
    LEADER.set(1)
    for name, queue in queues.items():
        QUEUE_AGE.labels(name).set_function(_reader(queue, "oldest_s"))
        for state in _STATES:
            QUEUE_KEYS.labels(name, state).set_function(_reader(queue, state))
    try:
        yield OpenRequests()
    finally:
        LEADER.set(0)
        OpenRequests()
        for name in queues:
            QUEUE_AGE.labels(name).set_function(_zero)
            for state in _STATES:
                QUEUE_KEYS.labels(name, state).set_function(_zero)


def _reader(queue: WorkQueue, member: str) -> Callable[[], float]:
    return lambda: float(getattr(queue.statistics(), member))


def _zero() -> float:
    return 0.0
