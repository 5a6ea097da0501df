"""The hand-over: which errors of the Sentinel end it."""

from __future__ import annotations

from reside.seed.handover import ErrorTimer


def test_a_lasting_error_counts_after_a_while() -> None:
    timer = ErrorTimer(40)
    assert [timer.has_expired("quota", now) for now in (100, 139, 140, 141)] == [False, False, True, True]


def test_a_transient_error_does_not_count() -> None:
    timer = ErrorTimer(40)
    reported = [("old", 100), (None, 110), ("old", 145), ("other", 150), ("old", 180), ("old", 219)]
    assert not any(timer.has_expired(error, now) for error, now in reported)
