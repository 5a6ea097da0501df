"""Liveness and readiness of a replica, and its Prometheus metrics.

Live: the event loop responds. Ready: started, and not stopping. Readiness is computed from the current state at each
probe, so it can't become stale. It does not depend on the sync server once the replica has started: calls read what is
in memory, and if all replicas became unready at once, an outage of the sync server would be one of every service.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

from reside.common.workqueue import observe_bugs

if TYPE_CHECKING:
    from collections.abc import Callable

RPC_CALLS = Counter(
    "reside_rpc_calls_total",
    "RPC calls handled, by HTTP status.",
    ["replica", "contract", "method", "status"],
)
RPC_SECONDS = Histogram(
    "reside_rpc_seconds",
    "Time to handle an RPC call.",
    ["replica", "contract", "method"],
)
GRANTS_FAILED = Counter(
    "reside_grant_failures_total",
    "Failed runs of a permission's handler.",
    ["replica"],
)
GRANTS_PENDING = Gauge(
    "reside_grants_pending",
    "Permissions that are not yet as Alpha expects them.",
    ["replica"],
)
LAST_GRANTS_PASS = Gauge(
    "reside_grants_last_pass_seconds",
    "Unix time of the last pass over the permissions.",
    ["replica"],
)
QUEUE_BUGS = Counter(
    "reside_queue_bugs_total",
    "Unexpected errors of a work queue's handlers: each is a bug; its key is put off, the others go on.",
    ["queue"],
)
observe_bugs(lambda queue: QUEUE_BUGS.labels(queue).inc())


@dataclass
class Health:
    """The state that the probes report."""

    started: bool = False
    """The start sequence is complete."""
    draining: bool = False
    """The process is stopping; it accepts no new work."""
    last_call_at: float = float("-inf")
    """When the last call arrived, on the event loop's clock."""
    checks: dict[str, Callable[[], bool]] = field(default_factory=dict)
    """Conditions of readiness of the replica's own code by name, e.g. `{"cache is warm": ...}`."""

    def missing(self) -> list[str]:
        """Return the conditions that do not hold; the replica is ready if there are none."""
        faults = [] if self.started else ["starting"]
        faults += ["stopping"] if self.draining else []
        return faults + [name for name, holds in self.checks.items() if not holds()]
