"""A thousand random interleavings of calls, deaths and pauses of two Alphas leave no impossible state.

`make test` draws the same ones in each run, so that a failure has its cause in a change. `make soak` draws others each
time. A failure names the seed and the number; `RESIDE_INTERLEAVINGS_SEED=<seed>` draws the same ones again, and
`RESIDE_INTERLEAVINGS_FIRST=<number>`, a multiple of 50, begins there. The sync server and etcd are in memory
(`support.memory_sync`, `reside.testing.MemoryEtcd`); the registry is real.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from random import Random
from secrets import randbelow
from typing import TYPE_CHECKING

import pytest
import structlog
from integration.alpha.interleavings import Pair, draw
from support.alpha_world import memory_servers, run_world
from support.registry import Registry, registry
from support.reports import report

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(2400)]

SEED = 1
PER_WORLD = 50
"""Interleavings of one cluster; one that has seen more has much content."""


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Yield a registry."""
    with registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Log nothing: formatting the logs of two Alphas would take a tenth of the time."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


async def play(images: Registry, monkeypatch: pytest.MonkeyPatch, count: int, seed: int) -> None:
    """Play interleavings, in several clusters."""
    seed = int(os.environ.get("RESIDE_INTERLEAVINGS_SEED") or seed)
    report(f"seed {seed}")
    outcomes, done = Counter[str](), int(os.environ.get("RESIDE_INTERLEAVINGS_FIRST") or 0)
    random = Random(seed)  # noqa: S311 - it draws tests
    for _ in range(done):
        draw(random)
    while done < count:
        servers, network = memory_servers(monkeypatch, images)
        async with run_world(servers, network) as world:
            pair = Pair(world, outcomes)
            await pair.begin()
            for _ in range(min(PER_WORLD, count - done)):
                steps = draw(random)
                try:
                    await pair.play(steps)
                except BaseException as error:
                    listed = "\n".join(map(str, steps))
                    error.add_note(f"seed {seed}, interleaving {done}:\n{listed}")
                    raise
                done += 1
            await pair.end()
    report("\n".join([*(f"{what}: {number}" for what, number in sorted(outcomes.items())), f"{done} interleavings"]))


async def test_a_thousand_interleavings_leave_no_impossible_state(
    images: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    await play(images, monkeypatch, 1000, SEED)


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_twenty_thousand_interleavings_leave_no_impossible_state(
    images: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    await play(images, monkeypatch, 20_000, randbelow(2**32))
