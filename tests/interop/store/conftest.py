"""A map with a long history in a local store, for each test."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from interop.proxy import Proxy, proxy
from support.jazz_nodes import Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import Credentials, Node, SqliteStore

WRITES = 300


@pytest.fixture
async def counting_proxy(jazz: JazzServer) -> AsyncIterator[Proxy]:
    """Yield a counting proxy in front of the server."""
    async with proxy(jazz.url) as made:
        yield made


class Store:
    """A map with many transactions by two accounts, held by one of them in a file."""

    def __init__(self, path: Path, credentials: Credentials, co_id: str) -> None:
        self.path, self.credentials, self.co_id = path, credentials, co_id

    def node(self, url: str) -> Node:
        """Return a node of the account that holds the map."""
        return Node(url, self.credentials, store=SqliteStore(self.path))


@pytest.fixture
async def store(jazz: JazzServer, nodes: Nodes, tmp_path: Path) -> Store:
    """Return such a map, written, flushed and closed."""
    credentials = Credentials.generate()
    other = await nodes("other")
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
        await node.register("keeper")
        group = node.create_group()
        await group.add_member(other.account_id, "writer")
        value = group.create_map({})
        for number in range(WRITES):
            value.set("mine", number)
        await node.flush()
        theirs = await other.load_map(value.id)
        for number in range(WRITES):
            theirs.set("theirs", number)
            if number % 50 == 0:
                await asyncio.sleep(0)
        await until(value, {"mine": WRITES - 1, "theirs": WRITES - 1})
        return Store(tmp_path / "store", credentials, value.id)
