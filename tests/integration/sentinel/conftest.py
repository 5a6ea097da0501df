"""Namespaces of the shared control plane, and a setup for a whole Sentinel in one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from integration.sentinel.setup import Setup, new_setup
from support.replicas import Servers, run_servers
from support.sentinel import new_namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from reside.local import ClusterInfo


@pytest.fixture
def namespace(cluster: ClusterInfo) -> str:
    """Return a fresh namespace."""
    return new_namespace(cluster)


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Yield a sync server and an etcd."""
    with run_servers() as running:
        yield running


@pytest.fixture
async def setup(cluster: ClusterInfo, servers: Servers, namespace: str, tmp_path: Path) -> AsyncIterator[Setup]:
    """Yield a setup in a fresh namespace; its Sentinel does not run yet."""
    async with new_setup(cluster, servers, namespace, tmp_path) as made:
        yield made
