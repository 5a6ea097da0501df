"""Whether a replica lives, whether it is ready, and its counters for Prometheus.

Live: the loop answers. Ready: logged in, connected to the sync server, serving, and not about to stop. Readiness is
computed at each question from the present state, so it can't be forgotten in a wrong position.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Callable

RPC_CALLS = Counter("reside_rpc_calls_total", "RPC calls answered.", ["replica", "contract", "method", "status"])
RPC_SECONDS = Histogram("reside_rpc_seconds", "Time to answer an RPC call.", ["replica", "contract", "method"])
GRANTS_FAILED = Counter("reside_grant_failures_total", "Failed runs of a permission's handler.", ["replica"])
GRANTS_PENDING = Gauge("reside_grants_pending", "Permissions not yet as expected.", ["replica"])
LAST_GRANTS_PASS = Gauge("reside_grants_last_pass_seconds", "Unix time of the last permission pass.", ["replica"])


@dataclass
class Health:
    """The state that the probes report."""

    started: bool = False
    """The start sequence is through."""
    draining: bool = False
    """The process was told to stop: no new work, please."""
    checks: dict[str, Callable[[], bool]] = field(default_factory=dict)
    """What must hold at the moment, e.g. `{"connected": ...}`."""

    def missing(self) -> list[str]:
        """What is not as it must be; nothing: ready."""
        faults = [] if self.started else ["starting"]
        faults += ["stopping"] if self.draining else []
        return faults + [name for name, holds in self.checks.items() if not holds()]
