"""The API server, its etcd, or both die before and after a request of the Sentinel; after their return all goes on."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest
from integration.sentinel.control_plane import OPERATIONS, SIDES, VICTIMS, ControlPlaneDeaths, Point
from integration.sentinel.processes import process
from support.api_proxy import api_proxy
from support.clusters import fresh_state
from support.eventually import eventually
from support.reports import report

from reside.local import LocalCluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from integration.sentinel.setup import Setup

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio
_LONG_PAUSE_S, _SHORT_S = 40.0, 20.0
"""An attempt during an outage takes 20 s itself, so the long pause comes after minutes."""
_FEWEST = 24
"""Points at least: the operations have at least four requests together, with two sides and three victims."""


@pytest.fixture(scope="module")
def control_plane() -> Iterator[LocalCluster]:
    """Yield a control plane that a test may kill."""
    made = LocalCluster("dying", fresh_state("dying"), control_plane_only=True)
    try:
        made.up()
        yield made
    finally:
        made.down(delete_state=True)


@pytest.fixture(scope="module")
def cluster(control_plane: LocalCluster) -> ClusterInfo:
    """Return how to reach this control plane, and not the shared one."""
    return control_plane.info()


@pytest.fixture
async def deaths(control_plane: LocalCluster, setup: Setup, tmp_path: Path) -> AsyncIterator[ControlPlaneDeaths]:
    """Yield a running Sentinel whose requests are seen; careful mode has ended."""
    async with api_proxy(control_plane.info(), setup.namespace, tmp_path) as proxy:
        settings = setup.settings.model_copy(update={"kubeconfig": proxy.kubeconfig})
        async with process(settings) as sentinel:
            alpha = await setup.alpha()
            await setup.careful(value=False)
            yield ControlPlaneDeaths(control_plane, setup, proxy, alpha)
            assert sentinel.returncode is None


SOME = (
    Point("create", "before", 1, "API server"),
    Point("update", "after", 1, "both"),
    Point("delete", "before", 1, "etcd"),
)
"""Requests that write, unless the Sentinel reads the object once more before."""


async def test_writes_survive_the_death_of_the_control_plane(deaths: ControlPlaneDeaths) -> None:
    came = [await deaths.die(point) for point in SOME]
    report("\n".join(deaths.tried))
    assert all(came)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_all_operations_survive_the_death_of_the_control_plane(deaths: ControlPlaneDeaths) -> None:
    missed = []
    for operation in OPERATIONS:
        requests = await deaths.requests(operation)
        report(f"{operation}: {', '.join(requests)}")
        for number, side, victim in itertools.product(range(1, len(requests) + 1), SIDES, VICTIMS):
            point = Point(operation, side, number, victim)
            if not await deaths.die(point):
                missed.append(point)
    report("\n".join([*deaths.tried, f"{len(deaths.tried)} points; not reached: {missed}"]))
    assert len(deaths.tried) >= _FEWEST


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_a_long_outage_leaves_no_long_pauses(deaths: ControlPlaneDeaths, setup: Setup) -> None:
    """The pause before the next attempt is nearly a minute when the API server returns."""
    log = setup.settings.state_dir.with_suffix(".log")

    async def long_pause() -> None:
        await eventually("a long pause", lambda: _longest_pause(log), lambda now: now > _LONG_PAUSE_S, within=400)

    assert await deaths.die(Point("update", "before", 1, "API server"), long_pause, within=_SHORT_S)
    report("\n".join(deaths.tried))


def _longest_pause(log: Path) -> float:
    """Return the longest pause before another attempt to apply a stack, in seconds."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return max((line["seconds"] for line in lines if line.get("queue") == "stack" and "seconds" in line), default=0.0)
