"""Namespaces of the shared control plane, and a setup for a whole Sentinel in one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from integration.sentinel.stage import Stage, stage
from support.replicas import Servers, servers
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
def on() -> Iterator[Servers]:
    """Yield a sync server and an etcd."""
    with servers() as running:
        yield running


@pytest.fixture
async def scene(cluster: ClusterInfo, on: Servers, namespace: str, tmp_path: Path) -> AsyncIterator[Stage]:
    """Yield a setup in a fresh namespace; its Sentinel does not run yet."""
    async with stage(cluster, on, namespace, tmp_path) as made:
        yield made
