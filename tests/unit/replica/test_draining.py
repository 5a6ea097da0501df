"""A stopping process ends when no calls arrive any more, and does not wait for ever."""

from __future__ import annotations

import asyncio

import pytest

from reside.replica import process
from reside.replica.health import Health

pytestmark = pytest.mark.anyio


async def calls(health: Health, every_s: float, count: int) -> None:
    for _ in range(count):
        health.last_call_at = asyncio.get_running_loop().time()
        await asyncio.sleep(every_s)


async def test_a_process_that_was_never_called_ends_at_once() -> None:
    async with asyncio.timeout(process.QUIET_S / 2):
        await process.until_quiet(Health())


async def test_a_process_takes_calls_until_none_arrive() -> None:
    health = Health()
    calling = asyncio.create_task(calls(health, 0.05, 16))
    await asyncio.sleep(0)
    await process.until_quiet(health)
    assert calling.done(), "it ended while it was being called"


async def test_a_process_that_is_called_all_the_time_ends_nevertheless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "LONGEST_DRAIN_S", 0.3)
    health = Health()
    calling = asyncio.create_task(calls(health, 0.05, 1000))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await process.until_quiet(health)
    assert not calling.done()
    calling.cancel()
