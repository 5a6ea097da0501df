"""Large files in the local store: restored in parts, completed from the server, checked."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from interop.proxy import proxy
from support.eventually import eventually
from support.jazz_nodes import Nodes
from support.jazz_server import JazzServer

from reside.jazz import Credentials, Node, SqliteStore, StoreFailed
from reside.jazz.ids import CoId

pytestmark = pytest.mark.anyio


async def test_a_large_file_is_restored_while_other_tasks_run(jazz: JazzServer, tmp_path: Path) -> None:
    """Every part is a turn of the event loop, and the server sends nothing that the store has."""
    credentials, data = Credentials.generate(), os.urandom(30_000_000)
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
        await node.register("keeper")
        file = node.create_group().open_file("x/y", size=len(data))
        await file.push_all(_pieces(data))
        await node.flush()
    async with (
        proxy(jazz.url) as counting,
        Node(counting.url, credentials, store=SqliteStore(tmp_path / "store")) as node,
    ):
        await node.login()
        sizes: list[int] = []
        watching = asyncio.create_task(_watch_sizes(node, file.id, sizes))
        restored = await node.load_file(file.id)
        watching.cancel()
        assert restored.read() == data
        assert len(set(sizes)) > 10
        assert counting.transactions("to client") < 10


@pytest.mark.parametrize("stored", [100_000, 2_000_000], ids=["small", "restored in parts"])
async def test_the_rest_of_a_file_that_is_in_the_store_in_part_is_loaded(
    stored: int, jazz: JazzServer, tmp_path: Path
) -> None:
    """Also by a reader who does not wait for the end."""
    credentials, data = Credentials.generate(), os.urandom(stored + 100_000)
    async with Nodes(jazz.url) as nodes:
        writer = await nodes("writer")
        group = writer.create_group()
        await group.add_member("everyone", "reader")
        file = group.open_file("x/y", size=len(data))
        file.push(data[:stored])
        await writer.flush()
        async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
            await node.register("keeper")
            begun = await node.open_file(file.id)
            await eventually("the first part", lambda: begun.received == stored)
        file.push(data[stored:])
        file.end()
        await writer.flush()
        async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
            await node.login()
            begun = await node.open_file(file.id)
            async with asyncio.timeout(90):
                assert b"".join([chunk async for chunk in begun.chunks()]) == data


async def test_a_damaged_part_of_a_large_file_ends_the_node(jazz: JazzServer, tmp_path: Path) -> None:
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
        await node.register("keeper")
        file = node.create_group().open_file("x/y")
        await file.push_all(_pieces(os.urandom(3_000_000)))
        await node.flush()
    with sqlite3.connect(tmp_path / "store") as database:
        (last,) = database.execute("SELECT max(number) FROM batch WHERE length(transactions) > 50000").fetchone()
        database.execute("UPDATE batch SET transactions = replace(transactions, 'A', 'B') WHERE number = ?", (last,))
    database.close()
    node = await Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")).__aenter__()
    try:
        await node.login()
        with pytest.raises(StoreFailed, match="corrupt"):
            await node.load_file(file.id)
    finally:
        await node.close()


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), 100_000):
        yield data[begin : begin + 100_000]


async def _watch_sizes(node: Node, co_id: str, sizes: list[int]) -> None:
    while True:
        await asyncio.sleep(0)
        core = node._host.store.cores.get(CoId(co_id))
        if core is not None:
            sizes.append(len(core.transactions))
