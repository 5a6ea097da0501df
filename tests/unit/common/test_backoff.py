"""Pauses double from the first to the longest, and success begins again with the first."""

from __future__ import annotations

from reside.common.backoff import Backoff, Retries


def test_pauses_double_up_to_a_limit() -> None:
    backoff = Backoff(first=1.0, longest=60.0)
    assert [backoff.pause(n) for n in (1, 2, 3, 7, 8, 10_000)] == [1, 2, 4, 60, 60, 60]


def test_without_a_failure_there_is_no_pause() -> None:
    assert Backoff().pause(0) == 0


def test_the_first_failures_may_be_free() -> None:
    backoff = Backoff(first=1.0, longest=8.0, free=2)
    assert [backoff.pause(n) for n in (1, 2, 3, 4, 10)] == [0, 0, 1, 2, 8]


def test_jitter_shortens_a_pause_by_at_most_its_part() -> None:
    backoff = Backoff(first=1.0, longest=8.0, jitter=0.25)
    assert [backoff.pause(2, draw) for draw in (0.0, 0.5, 1.0)] == [2.0, 1.75, 1.5]


def test_retries_count_failures_in_a_row() -> None:
    retries = Retries(Backoff(first=1.0, longest=4.0))
    assert [retries.failed() for _ in range(4)] == [1, 2, 4, 4]
    assert retries.failures == 4
    retries.succeeded()
    assert retries.failed() == 1


def test_each_pause_draws_its_own_jitter() -> None:
    draws = iter((0.0, 1.0))
    retries = Retries(Backoff(first=1.0, longest=1.0, jitter=0.5), lambda: next(draws))
    assert [retries.failed(), retries.failed()] == [1.0, 0.5]
