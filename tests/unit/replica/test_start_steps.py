"""The steps of a start: durations, and the error of a step that hangs."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import REGISTRY

from reside.model.errors import NotReady
from reside.replica.start_steps import StartSteps

pytestmark = pytest.mark.anyio


async def test_each_step_has_its_duration_as_a_metric() -> None:
    steps = StartSteps("timed")
    for name in ("first", "second"):
        async with steps.step(name):
            pass
    assert list(steps.seconds) == ["first", "second"]
    labels = {"replica": "timed", "step": "second"}
    assert REGISTRY.get_sample_value("reside_start_step_seconds", labels) == steps.seconds["second"]


async def test_a_step_that_hangs_is_named_with_those_that_are_done() -> None:
    steps = StartSteps("hanging", timeout_s=0.05)
    async with steps.step("log in"):
        pass
    with pytest.raises(NotReady, match=r"hanging can't start: publish was not complete after 0.05 s \(done: log in"):
        async with steps.step("publish"):
            await asyncio.Event().wait()


async def test_an_error_of_a_step_is_raised_as_it_is() -> None:
    steps = StartSteps("failing")
    with pytest.raises(TimeoutError, match="its own"):
        async with steps.step("publish"):
            raise TimeoutError("its own")
    assert not steps.seconds
