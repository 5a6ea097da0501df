"""Whatever dies at any point of an operation, the next one makes live = desired, with nothing left of the first.

Points are before and after each request to the API server and each write of the state. The tests print how many they
tried (`-s` shows it).
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING

import pytest
from integration.chaos.operations import OPERATIONS
from integration.chaos.world import VICTIMS, Point, Victim, new_world, points
from support.reports import report

if TYPE_CHECKING:
    from pathlib import Path

    from integration.chaos.operations import Operation

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
_REQUESTS = {"create": 3, "update": 4, "replace": 3, "delete": 4, "destroy": 4, "adopt": 2}
"""Requests to the API server that each operation makes at least."""
_WRITES = 2
"""Writes of the state that each operation makes at least: one by the engine, at its end, and one of what is synced."""


def some_points(source: random.Random) -> list[tuple[Operation, Point, Victim]]:
    """Return a point at a request and one at a write of the state, for each operation, with all victims."""
    victims = itertools.cycle(source.sample(VICTIMS, len(VICTIMS)))
    processes = itertools.cycle(victim for victim in source.sample(VICTIMS, len(VICTIMS)) if victim != "api server")
    chosen = []
    for operation in OPERATIONS:
        number = source.randint(1, _REQUESTS[operation.name])
        chosen.append((operation, Point("request", source.choice(("before", "after")), number), next(victims)))
        number = source.randint(1, _WRITES)
        chosen.append((operation, Point("state", source.choice(("before", "after")), number), next(processes)))
    return chosen


async def test_operations_survive_deaths_at_some_of_their_points(cluster: ClusterInfo, tmp_path: Path) -> None:
    tried = []
    async with new_world(cluster, tmp_path) as world:
        for operation, point, victim in some_points(random.Random(14)):  # noqa: S311 - the same points in each run
            tried.append(await world.survives(operation, point, victim))
    report("\n".join(filter(None, tried)))
    assert len(tried) == len(list(filter(None, tried))) == 2 * len(OPERATIONS)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("victim", VICTIMS)
async def test_operations_survive_deaths_at_all_of_their_points(
    cluster: ClusterInfo, tmp_path: Path, victim: Victim
) -> None:
    """A dead API server can't be noticed at a write of the state."""
    tried = []
    async with new_world(cluster, tmp_path) as world:
        for operation, what in itertools.product(OPERATIONS, ("request", "state")):
            for point in points(what) if what == "request" or victim != "api server" else ():
                if not (name := await world.survives(operation, point, victim)):
                    break
                tried.append(name)
    report("\n".join([*tried, f"{len(tried)} points"]))
    assert len(tried) >= (40 if victim == "api server" else 60)
