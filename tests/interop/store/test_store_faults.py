"""Files that the local store cannot use are named with the cure, and no error of the disk is hidden."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from interop.store.conftest import Store
from support.jazz_server import JazzServer

from reside.jazz import Credentials, Node, SqliteStore, StoreFailed

pytestmark = pytest.mark.anyio


async def test_only_one_process_can_open_a_file(jazz: JazzServer, store: Store) -> None:
    async with store.node(jazz.url):
        with pytest.raises(StoreFailed, match="another process has it open: stop it, or use another file"):
            async with store.node(jazz.url):
                pass
    async with store.node(jazz.url) as node:
        await node.login()


async def test_a_file_belongs_to_one_account(jazz: JazzServer, store: Store) -> None:
    with pytest.raises(StoreFailed, match=f"belongs to the account {store.credentials.account_id}"):
        async with Node(jazz.url, Credentials.generate(), store=SqliteStore(store.path)):
            pass


def _garbage(path: Path) -> None:
    path.write_bytes(b"no database at all, but a text" * 1000)


def _torn(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for offset in range(4096, len(data), 4096):
        data[offset : offset + 64] = os.urandom(64)
    path.write_bytes(data)


def _changed(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        connection = sqlite3.connect(path)
        with connection:
            connection.execute(statement)
        connection.close()

    return change


BROKEN = {
    "garbage": (_garbage, "is corrupt: delete it"),
    "torn": (_torn, "is corrupt: delete it"),
    "a word of another": (
        _changed("UPDATE batch SET transactions = replace(transactions, '\"madeAt\":', '\"madeAt\":1')"),
        "does not verify",
    ),
    "a header of another": (
        _changed("UPDATE value SET header = (SELECT header FROM value LIMIT 1)"),
        "another value's",
    ),
    "a header that is none": (_changed("UPDATE value SET header = '{'"), "is corrupt: delete it"),
    "a gap": (_changed("DELETE FROM batch WHERE after = 0"), "has a gap"),
    "a later version": (_changed("PRAGMA user_version = 9"), "its version is 9, this program supports 1"),
    "another program's": (_changed("PRAGMA application_id = 9"), "a database of another application"),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_damaged_file_is_named_with_the_cure(kind: str, jazz: JazzServer, store: Store) -> None:
    damage, message = BROKEN[kind]
    damage(store.path)

    async def use() -> None:
        async with store.node(jazz.url) as node:
            await node.login()
            await node.load_map(store.co_id)

    with pytest.raises(StoreFailed, match=message) as caught:
        await use()
    assert str(store.path) in str(caught.value)


async def test_a_full_disk_ends_the_node_with_the_reason(jazz: JazzServer, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")

    async def write() -> None:
        async with Node(jazz.url, Credentials.generate(), store=store) as node, asyncio.timeout(90):
            await node.register("someone")
            assert store._connection is not None
            store._connection.execute("PRAGMA max_page_count = 1")
            value = node.create_group().create_map({})
            while True:
                value.set("x", "x" * 10_000)
                await asyncio.sleep(0)

    with pytest.raises(StoreFailed, match="full"):
        await write()


async def test_using_a_closed_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="not open"):
        SqliteStore(tmp_path / "store")._header("co_z1")
    with pytest.raises(StoreFailed, match="unable to open"):
        SqliteStore(tmp_path / "nowhere" / "store")._open("co_z1")
    assert repr(SqliteStore(tmp_path)) == f"<SqliteStore {tmp_path}>"
