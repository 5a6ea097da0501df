"""What tests on real parts stand on; a file that needs another stage has fixtures of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from support.clusters import control_plane
from support.replicas import servers, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from integration.resident.sides import Sides
    from support.replicas import Identity, Servers, World

    from reside.jazz import Credentials
    from reside.local import ClusterInfo


@pytest.fixture(scope="session")
def cluster() -> Iterator[ClusterInfo]:
    """A control plane for all files that a worker runs; each test has a namespace of its own."""
    with control_plane(f"integration-{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}") as info:
        yield info


@pytest.fixture(scope="module")
def on() -> Iterator[Servers]:
    """A sync server and an etcd."""
    with servers() as running:
        yield running


@pytest.fixture
async def around(on: Servers) -> AsyncIterator[World]:
    """A world on them."""
    async with world(on) as made:
        yield made


@pytest.fixture
async def identity(around: World) -> Identity:
    """The greeter's account and control block."""
    return await around.identity("greeter")


@pytest.fixture
async def client(around: World) -> Credentials:
    """An account without any grant."""
    return await around.account("client")


@pytest.fixture(scope="session")
def both(cluster: ClusterInfo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    """The stock and the resident engine, for all files that compare them."""
    from integration.resident.sides import sides  # noqa: PLC0415 - imports pulumi, which the other tests need not pay for

    with sides(cluster, tmp_path_factory.mktemp("resident")) as made:
        yield made
