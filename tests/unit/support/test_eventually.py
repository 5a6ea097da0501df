"""Waiting in tests: the first match is returned, a failure says what was expected and what was last seen."""

import asyncio

import pytest
from support.eventually import eventually, eventually_sync

pytestmark = pytest.mark.anyio


async def test_the_first_match_is_returned() -> None:
    numbers = iter(range(10))
    assert await eventually("three", lambda: next(numbers), lambda number: number == 3) == 3

    async def look() -> int:
        return next(numbers)

    assert await eventually("a true value", look) == 4
    assert eventually_sync("six", lambda: next(numbers), lambda number: number == 6) == 6


async def test_a_failed_wait_names_the_expected_state_and_the_last_result() -> None:
    with pytest.raises(AssertionError, match=r"^expected a list within 0.02 s; last seen: \[\]$"):
        await eventually("a list", list, within=0.02)
    with pytest.raises(AssertionError, match=r"^expected a list within 0.02 s; last seen: an empty one$"):
        eventually_sync("a list", list, within=0.02, show=lambda _seen: "an empty one")


async def test_a_look_that_does_not_return_is_interrupted() -> None:
    with pytest.raises(AssertionError, match="last seen: nothing, the first look did not return"):
        await eventually("an end", asyncio.Event().wait, within=0.02)


async def test_an_error_of_a_look_ends_the_wait() -> None:
    async def fail() -> None:
        raise TimeoutError("of the look")

    with pytest.raises(TimeoutError, match="of the look"):
        await eventually("nothing", fail)
    with pytest.raises(ZeroDivisionError):
        eventually_sync("nothing", lambda: 1 / 0)


async def test_a_pause_is_at_least_as_long_as_the_look_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that starts a program must not use all of the time."""
    now, pauses = 0.0, list[float]()

    def look() -> bool:
        nonlocal now
        now += 3.0
        return len(pauses) == 2

    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr("time.sleep", pauses.append)
    eventually_sync("the third look", look)
    assert pauses == [3.0, 3.0]
