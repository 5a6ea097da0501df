"""Servers for replicas, a world on them, and two accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.replicas import servers, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.replicas import Identity, Servers, World

    from reside.jazz import Credentials


@pytest.fixture(scope="module")
def on() -> Iterator[Servers]:
    """Yield a sync server and an etcd."""
    with servers() as running:
        yield running


@pytest.fixture
async def around(on: Servers) -> AsyncIterator[World]:
    """Yield a world on them."""
    async with world(on) as made:
        yield made


@pytest.fixture
async def identity(around: World) -> Identity:
    """Return the greeter's account and control block."""
    return await around.identity("greeter")


@pytest.fixture
async def client(around: World) -> Credentials:
    """Return an account without any grant."""
    return await around.account("client")
