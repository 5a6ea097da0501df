"""Polling repeats until the state is reached, and ends at its deadline."""

from __future__ import annotations

import time

import anyio
import pytest

from reside.access.waiting import until as until_ready
from reside.common.backoff import Backoff
from reside.common.polling import DeadlineExceeded, Missing, until, wait_until
from reside.model.errors import NotReady

QUICK = Backoff(first=0.001, longest=0.002)


@pytest.mark.anyio
async def test_until_returns_what_the_first_look_without_missing_returns() -> None:
    looks = 0

    async def look() -> int:
        nonlocal looks
        looks += 1
        if looks < 3:
            raise Missing("not yet")
        return looks

    assert await until(look, 10, QUICK) == 3


@pytest.mark.anyio
async def test_until_says_at_its_deadline_what_was_missing() -> None:
    async def look() -> None:
        raise Missing("2 of 3 pods are ready")

    with pytest.raises(DeadlineExceeded, match="2 of 3 pods are ready"):
        await until(look, 0.01, QUICK)


@pytest.mark.anyio
async def test_until_ends_a_look_that_hangs() -> None:
    with pytest.raises(DeadlineExceeded, match="never seen"):
        await until(anyio.sleep_forever, 0.01)


@pytest.mark.anyio
async def test_until_does_not_hide_errors() -> None:
    async def look() -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        await until(look, 10, QUICK)


@pytest.mark.anyio
async def test_a_cluster_that_is_late_is_not_ready() -> None:
    async def look() -> None:
        raise Missing("no pod is ready")

    with pytest.raises(NotReady, match=r"Alpha was not reached in 0 s: no pod is ready"):
        await until_ready(look, "Alpha", 0.01)


def test_wait_until_looks_again() -> None:
    answers = iter((False, False, True))
    assert wait_until(lambda: next(answers), 10, QUICK)


def test_wait_until_gives_up_at_its_deadline() -> None:
    began = time.monotonic()
    assert not wait_until(lambda: False, 0.02, Backoff(first=60, longest=60))
    assert time.monotonic() - began < 10


def test_wait_until_looks_once_although_no_time_is_left() -> None:
    assert wait_until(lambda: True, 0)
    assert not wait_until(lambda: False, 0)


def test_wait_until_does_not_hide_errors() -> None:
    def condition() -> bool:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        wait_until(condition, 10)
