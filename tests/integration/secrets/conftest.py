"""The replica *secret* in this process at a real sync server, with users and the small Alpha of `reside.testing`."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.jazz_history import History
from support.jazz_server import jazz_server

from reside.model.secret_contract import READ_SECRET, SET_SECRET, WRITE_SECRET
from reside.replica import load_contract
from reside.replica.profile import load_profile
from reside.replica.secrets import SecretReader, handed_over
from reside.secrets.app import declare
from reside.testing import cluster as in_process

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.jazz_history import Stored
    from support.jazz_server import JazzServer

    from reside.jazz import CoMap
    from reside.replica import Context, Replica
    from reside.testing import Cluster, Instance, User

CONTRACT = Path(__file__).parents[3] / "replicas" / "secret" / "secret.v1" / "contract.yaml"
_numbers = count(1)


@dataclass(frozen=True)
class World:
    """A cluster with a running replica *secret*."""

    server: JazzServer
    cluster: Cluster
    keeper: Instance
    context: Context

    async def user(self, **permissions: str) -> User:
        """Return a new account that may read and set these secrets."""
        made = await self.cluster.user()
        for kind, name in permissions.items():
            await self.cluster.grant(made, self.keeper, {"reads": READ_SECRET, "sets": WRITE_SECRET}[kind], name)
        return made

    async def set(self, user: User, name: str, value: str, **more: Any) -> Any:
        """Set a secret as a user."""
        async with handed_over(user.node, self.keeper.account, value) as handed:
            return await user.call(self.keeper, SET_SECRET, {"name": name, "value": handed, **more})

    async def entry(self, user: User, name: str) -> CoMap:
        """Return the map of a secret as a user sees it."""
        return await (await self._reader(user, name))._find(None)

    async def get(self, user: User, name: str) -> str | None:
        """Return the value of a secret as a user reads it."""
        found = await (await self._reader(user, name)).read()
        return None if found is None else found.value

    async def _reader(self, user: User, name: str) -> SecretReader:
        await user.node.catch_up()
        return SecretReader(user.node, (await load_profile(user.node, self.keeper.account)).group.id, name)

    async def decrypted(self, user: User) -> dict[Stored, str]:
        """Return all that a user can decrypt of everything that the server has stored."""
        await user.node.catch_up()
        return await History(self.server.folder / "jazz.sqlite").decrypted_by(user.node)


def secret_replica() -> Replica:
    """Return the replica as it is shipped."""
    return declare(load_contract(CONTRACT))


@pytest.fixture(scope="module")
def server() -> Iterator[JazzServer]:
    """Yield a sync server that erases soon."""
    with jazz_server(MODE="members", ERASE_S="1") as running:
        yield running


@pytest.fixture(scope="module")
async def world(server: JazzServer) -> AsyncIterator[World]:
    """Yield a cluster with a running replica *secret*."""
    async with in_process(sync_server=server.url) as cluster:
        keeper = await cluster.add(secret_replica(), "secret")
        async with running(server, cluster, keeper) as made:
            yield made


@asynccontextmanager
async def running(server: JazzServer, cluster: Cluster, keeper: Instance) -> AsyncIterator[World]:
    """Run an instance of the replica *secret* while the block is open."""
    async with keeper.running() as context:
        yield World(server, cluster, keeper, context)


@pytest.fixture
def name() -> str:
    """Return the name of a secret that no other test has."""
    return f"secret-{next(_numbers)}"
