"""Servers for replicas, an account that acts as Alpha, and two other accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.replicas import run_alpha_double, run_servers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.replicas import AlphaDouble, Identity, Servers

    from reside.jazz import Credentials


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """Yield a sync server and an etcd."""
    with run_servers() as running:
        yield running


@pytest.fixture
async def alpha_double(servers: Servers) -> AsyncIterator[AlphaDouble]:
    """Yield an account that acts as Alpha."""
    async with run_alpha_double(servers) as made:
        yield made


@pytest.fixture
async def identity(alpha_double: AlphaDouble) -> Identity:
    """Return the greeter's account and control block."""
    return await alpha_double.identity("greeter")


@pytest.fixture
async def client(alpha_double: AlphaDouble) -> Credentials:
    """Return an account without any grant."""
    return await alpha_double.account("client")
