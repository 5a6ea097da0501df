"""The Sentinel's back-offs, and the rate limit on repairs of one object."""

from __future__ import annotations

from dataclasses import dataclass, field

from reside.common.backoff import Backoff

_JITTER = 0.25
APPLY_BACKOFF = Backoff(first=1.0, longest=60.0, jitter=_JITTER)
"""Pauses between attempts to apply a stack. Each attempt costs about a second of engine time."""
REPAIR_BACKOFF = Backoff(first=0.5, longest=60.0, free=5, jitter=_JITTER)
"""Pauses between repairs of one object. Manual changes are reverted immediately, repeated changes by another controller
with back-off."""
CONNECT_BACKOFF = Backoff(first=0.2, longest=10.0, jitter=_JITTER)
"""Pauses between attempts to reach the Kubernetes API, Jazz or etcd."""
ATTEMPTS = 40
"""Consecutive failures, half an hour, after which a stack or an object waits for a change. Transient errors are retried
without end, because what makes them pass is no change that the Sentinel sees."""


@dataclass
class RepairLimiter:
    """Limit how often each key is repaired.

    Args:
        backoff: pause before the next repair, by the number of recent repairs.
        reset_after: seconds without a repair after which the count is reset.
    """

    backoff: Backoff
    reset_after: float
    _repairs: dict[str, tuple[int, float]] = field(default_factory=dict)

    def note(self, key: str, now: float) -> None:
        """Count a repair of `key` at time `now`."""
        self._repairs[key] = (self._count(key, now) + 1, now)

    def wait(self, key: str, now: float) -> float:
        """Return the seconds until `key` may be repaired again."""
        count = self._count(key, now)
        last = self._repairs[key][1] if count else now
        return max(0.0, last + self.backoff.pause(count) - now)

    def _count(self, key: str, now: float) -> int:
        count, last = self._repairs.get(key, (0, now))
        return count if now - last <= self.reset_after else 0
