"""Servers for each file of tests of Alpha, and an Alpha on them for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.alpha_cluster import AlphaCluster, Client, Servers, alpha_cluster, run_servers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Yield a sync server, an etcd and a registry."""
    with run_servers(tmp_path_factory.mktemp("alpha")) as running:
        yield running


@pytest.fixture
async def cluster(servers: Servers) -> AsyncIterator[AlphaCluster]:
    """Yield a running Alpha on them."""
    async with alpha_cluster(servers) as made:
        yield made


@pytest.fixture
async def admin(cluster: AlphaCluster) -> Client:
    """Return the super admin of this Alpha."""
    return await cluster.admin()
