"""Tasks that become ready at once take turns, so that the event loop looks at its timers and sockets in between."""

from __future__ import annotations

import asyncio

import pytest

from reside.common.turns import Turns, in_rounds

pytestmark = pytest.mark.anyio
WITHIN_S = 60.0


async def rounds_of(turns: Turns, count: int, cancelled: tuple[int, ...] = ()) -> list[tuple[int, int]]:
    """Let so many tasks take a turn at once; return in which round of the loop each of them had it, in order."""
    round_, had, go = 0, list[tuple[int, int]](), asyncio.Event()
    loop = asyncio.get_running_loop()

    def next_round() -> None:
        nonlocal round_
        round_ += 1
        ticking.append(loop.call_soon(next_round))

    async def one(number: int) -> None:
        await go.wait()
        await turns.take()
        had.append((number, round_))

    ticking = [loop.call_soon(next_round)]
    tasks = [asyncio.create_task(one(number)) for number in range(count)]
    await asyncio.sleep(0)
    go.set()
    await asyncio.sleep(0)
    for number in cancelled:
        tasks[number].cancel()
    async with asyncio.timeout(WITHIN_S):
        await asyncio.wait(tasks)
    ticking[-1].cancel()
    return had


async def test_one_task_computes_in_each_round_of_the_loop_in_their_order() -> None:
    had = await rounds_of(Turns(), 20)
    assert [number for number, _ in had] == list(range(20))
    assert len({found for _, found in had}) == 20


async def test_a_cancelled_task_takes_no_turn_and_delays_no_other() -> None:
    had = await rounds_of(Turns(), 5, cancelled=(1, 2, 4))
    assert [number for number, _ in had] == [0, 3]


async def test_turns_can_be_taken_again_after_all_had_theirs() -> None:
    turns = Turns()
    for _ in range(3):
        assert len(await rounds_of(turns, 4)) == 4
    async with asyncio.timeout(WITHIN_S):
        await turns.take()


async def test_so_many_items_are_handled_in_each_round_of_the_loop() -> None:
    handled, seen = 0, list[int]()
    asyncio.get_running_loop().call_soon(lambda: seen.append(handled))
    async with asyncio.timeout(WITHIN_S):
        async for _ in in_rounds(range(7), 3):
            handled += 1
    assert (seen, handled) == ([3], 7)
