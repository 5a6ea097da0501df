"""Background tasks: the end of one ends the block, and no error is lost or wrapped."""

from __future__ import annotations

import asyncio

import pytest

from reside.replica.background import in_background

pytestmark = pytest.mark.anyio


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("of the loop")


async def ending() -> None:
    pass


async def run_until_told(**loops: object) -> None:
    async with in_background(**loops):  # type: ignore[arg-type]  # only tests hand them on
        await forever()


async def test_loops_end_with_the_block() -> None:
    ended = asyncio.Event()

    async def loop() -> None:
        try:
            await forever()
        finally:
            ended.set()

    async with in_background(loop=loop):
        await asyncio.sleep(0)
    assert ended.is_set()


async def test_a_failing_loop_ends_the_block_with_its_own_error() -> None:
    with pytest.raises(ValueError, match="of the loop"):
        await run_until_told(forever=forever, broken=broken)


async def test_a_loop_that_just_ends_is_reported_as_a_bug() -> None:
    with pytest.raises(RuntimeError, match="the loop ending ended"):
        await run_until_told(ending=ending)


async def test_the_blocks_error_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError, match="of the block"):
        async with in_background(forever=forever):
            raise KeyError("of the block")
