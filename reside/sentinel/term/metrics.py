"""Metrics of a term, on the metrics page of the Sentinel's pod: its queues, its operations, the engine's memory.

The numbers of a queue, and the memory, are read when the page is read. Those of queues are 0 while another process
leads.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Literal

from prometheus_client import Counter, Gauge, Histogram

from reside.common.processes import resident_memory
from reside.sentinel.objects.identity import split_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reside.common.workqueue import WorkQueue
    from reside.model.previews import ObjectChange

Operation = Literal["apply", "remove", "preview"]
Phase = Literal["check", "wait", "store", "engine"]

LEADER = Gauge(
    "reside_sentinel_leader",
    "1 while this Sentinel leads; the sum over all Sentinels is 1 but for a change of leader.",
)
QUEUE_KEYS = Gauge(
    "reside_sentinel_queue_keys",
    "Keys of the leader's queues `read`, `stack`, `preview` and `report`: `waiting`, `running`, `failing`.",
    ["queue", "state"],
)
QUEUE_AGE = Gauge(
    "reside_sentinel_queue_age_seconds",
    "Time for which the oldest key has been due; that of `stack` grows if the Sentinel can't keep up.",
    ["queue"],
)
LANE_WAIT = Histogram(
    "reside_sentinel_lane_wait_seconds",
    "Time for which a key was due before a lane handled it.",
    ["queue"],
)
PHASES = Histogram(
    "reside_sentinel_operation_phase_seconds",
    "Duration of the phases of `apply`, `remove` and `preview`: `check` (of objects that exist), `wait` "
    "(for the stack's turn or a lane), `engine`, `store`.",
    ["operation", "phase"],
)
OBJECTS = Counter(
    "reside_sentinel_objects_total",
    "Objects that applies and removals changed.",
    ["kind", "action"],
)
ENGINE_MEMORY = Gauge(
    "reside_sentinel_engine_memory_bytes",
    "Resident memory of the engine and its providers.",
)
ENGINE_MEMORY.set_function(lambda: float(resident_memory(os.getpid())))
_STATES: Final = ("waiting", "running", "failing")


@contextmanager
def phase(operation: Operation, name: Phase) -> Iterator[None]:
    """Measure the phase of an operation while the block is open, whatever ends it."""
    began = time.monotonic()
    try:
        yield
    finally:
        PHASES.labels(operation, name).observe(time.monotonic() - began)


def count(changes: Iterable[ObjectChange]) -> None:
    """Count what an apply or a removal changed."""
    for change in changes:
        OBJECTS.labels(split_key(change.object)[0], change.action).inc()


@contextmanager
def shown(*queues: WorkQueue) -> Iterator[None]:
    """Show the queues of a term, and that this process leads, while the block is open."""
    for queue in queues:
        queue.observe_waits(LANE_WAIT.labels(queue.name).observe)
        QUEUE_AGE.labels(queue.name).set_function(_reader(queue, "oldest_s"))
        for state in _STATES:
            QUEUE_KEYS.labels(queue.name, state).set_function(_reader(queue, state))
    LEADER.set(1)
    try:
        yield
    finally:
        LEADER.set(0)
        for queue in queues:
            QUEUE_AGE.labels(queue.name).set_function(_zero)
            for state in _STATES:
                QUEUE_KEYS.labels(queue.name, state).set_function(_zero)


def _reader(queue: WorkQueue, member: str) -> Callable[[], float]:
    return lambda: float(getattr(queue.statistics(), member))


def _zero() -> float:
    return 0.0
