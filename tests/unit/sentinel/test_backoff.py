"""Repairs of one object are limited."""

from __future__ import annotations

from reside.common.backoff import Backoff
from reside.sentinel.backoff import RepairLimiter


def test_repairs_are_immediate_at_first_then_delayed_and_forgotten_after_a_quiet_time() -> None:
    limiter = RepairLimiter(Backoff(first=1.0, longest=8.0, free=2), reset_after=100)
    for _ in range(2):
        limiter.note("a", 0)
    assert limiter.wait("a", 0) == 0
    limiter.note("a", 0)
    assert limiter.wait("a", 0) == 1.0
    assert limiter.wait("a", 0.25) == 0.75
    limiter.note("a", 1)
    assert limiter.wait("a", 1) == 2.0
    assert limiter.wait("b", 1) == 0
    assert limiter.wait("a", 102) == 0
