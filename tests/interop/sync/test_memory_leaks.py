"""A node that runs for long: loads, subscriptions and writes leak neither memory nor tasks."""

import asyncio
import gc
import itertools
import tracemalloc
from collections.abc import Iterator

import pytest
from support.jazz_nodes import Nodes, until

from reside.jazz import CoMap, Group, Node

pytestmark = pytest.mark.anyio
SHARED = 700
"""Distinct values: more than a node keeps in memory unless they are used."""


@pytest.fixture(autouse=True)
def tracing() -> Iterator[None]:
    """Count allocations during the test."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


def _used() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def _group(writer: Node) -> Group:
    group = writer.create_group()
    await group.add_member("everyone", "reader")
    return group


async def _load_and_leave(node: Node, co_id: str) -> None:
    value = await node.load_map(co_id)
    calls: list[CoMap] = []
    unsubscribe = value.on_change(calls.append)
    async with value.watch() as changes:
        assert (await anext(changes))["x"] == "y"
    unsubscribe()


@pytest.mark.parametrize("rounds", [3, pytest.param(15, marks=pytest.mark.soak)])
async def test_loads_and_unsubscribes_leak_no_memory(rounds: int, nodes: Nodes) -> None:
    """2,100 loads; in the soak 10,500."""
    writer, reader = await nodes("writer"), await nodes("reader")
    group = await _group(writer)
    ids = [group.create_map({"x": "y"}).id for _ in range(SHARED)]
    await writer.flush()
    tasks, used, kept = len(asyncio.all_tasks()), [], []
    for _ in range(rounds):
        for start in range(0, SHARED, 50):
            async with asyncio.TaskGroup() as loads:
                for co_id in ids[start : start + 50]:
                    loads.create_task(_load_and_leave(reader, co_id))
        used.append(_used())
        kept.append(reader.statistics)
    assert max(figures.values for figures in kept) < SHARED
    assert {(figures.watchers, figures.loads, figures.buffered) for figures in kept} == {(0, 0, 0)}
    assert len(asyncio.all_tasks()) == tasks
    assert max(used[1:]) - used[0] < 300_000, used


@pytest.mark.parametrize("rounds", [3, pytest.param(36, marks=pytest.mark.soak)])
async def test_updates_of_an_hour_leak_no_memory(rounds: int, nodes: Nodes) -> None:
    """1,000 updates a round, to values that are watched and then replaced by others; in the soak 36,000."""
    writer, reader = await nodes("writer"), await nodes("reader")
    group = await _group(writer)
    tasks, used = len(asyncio.all_tasks()), []
    for _ in range(rounds):
        for _ in range(4):
            mine = group.create_map({"at": -1})
            await mine.uploaded()
            theirs = await reader.load_map(mine.id)
            for number in range(250):
                mine.set("at", number)
                if number % 10 == 0:
                    await asyncio.sleep(0)
            await until(theirs, {"at": 249})
            await mine.uploaded()
        del mine, theirs
        for node in (writer, reader):
            node._host.objects.release()
            gc.collect()
            node._runtime._evict()
        used.append(_used())
    assert len(asyncio.all_tasks()) == tasks
    assert max(used[1:]) - used[0] < 200_000, used
    assert writer.statistics.unacknowledged == 0


async def test_a_loaded_value_grows_only_with_its_log(nodes: Nodes) -> None:
    """The log is kept, as in every client: the cost of an update does not depend on the length of the log."""
    writer, reader = await nodes("writer"), await nodes("reader")
    mine = (await _group(writer)).create_map({"at": -1})
    await mine.uploaded()
    theirs = await reader.load_map(mine.id)
    used = []
    for part in range(4):
        for number in range(500):
            mine.set("at", part * 500 + number)
            if number % 10 == 0:
                await asyncio.sleep(0)
        await until(theirs, {"at": part * 500 + 499})
        await mine.uploaded()
        used.append(_used())
    growth = [after - before for before, after in itertools.pairwise(used)]
    assert max(growth) < 1.5 * min(growth), growth
    assert max(growth) / 500 < 6_000, "bytes an update, in two nodes"
