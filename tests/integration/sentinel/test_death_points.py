"""A pod of the Sentinel, Jazz or etcd dies before and after a request to the API server; the rest goes by itself.

These are the operations of the whole Sentinel; tests/integration/chaos has all points of the engine's operations.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from integration.sentinel.deaths import OPERATIONS, POD, SIDES, Deaths
from support.api_proxy import Side, api_proxy
from support.replicas import Servers, run_servers
from support.reports import report

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from integration.sentinel.setup import Setup

    from reside.local import ClusterInfo

pytestmark = pytest.mark.anyio


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Servers that a test may kill."""
    with run_servers() as running:
        yield running


@pytest.fixture
async def deaths(cluster: ClusterInfo, setup: Setup, servers: Servers, tmp_path: Path) -> AsyncIterator[Deaths]:
    """Yield a Sentinel whose requests are seen; careful mode has ended."""
    async with api_proxy(cluster, setup.namespace, tmp_path) as proxy:
        yield Deaths(cluster, setup, {"jazz": servers.jazz, "etcd": servers.etcd}, proxy)


SOME: tuple[tuple[str, Side, str], ...] = (("repair", "after", POD), ("prune", "before", POD))


async def test_a_repair_and_a_prune_survive_the_death_of_the_pod(deaths: Deaths) -> None:
    await deaths.run(SOME)
    report("; ".join(deaths.names))
    assert len(deaths.names) == len(SOME)


@pytest.mark.soak
@pytest.mark.timeout(3600)
async def test_all_operations_survive_the_death_of_pod_jazz_and_etcd(deaths: Deaths) -> None:
    await deaths.run(itertools.product(OPERATIONS, SIDES, (POD, "jazz", "etcd")))
    report("\n".join([*deaths.names, f"{len(deaths.names)} points"]))
    assert len(deaths.names) == len(OPERATIONS) * 6
