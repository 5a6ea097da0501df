"""The local store: a restart reads the disk and transfers the difference; a damaged file is reported."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from interop.proxy import Proxy, proxy
from support.eventually import eventually
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer, jazz_server

from reside.jazz import Credentials, JazzTimeout, Node, SqliteStore, StoreFailed, ValueNotFound

pytestmark = pytest.mark.anyio
WRITES = 300


@pytest.fixture
async def counting_proxy(jazz: JazzServer) -> AsyncIterator[Proxy]:
    """Yield a counting proxy in front of the server."""
    async with proxy(jazz.url) as made:
        yield made


class _Store:
    """A map with many transactions by two accounts, held by one of them in a file."""

    def __init__(self, path: Path, credentials: Credentials, co_id: str) -> None:
        self.path, self.credentials, self.co_id = path, credentials, co_id

    def node(self, url: str) -> Node:
        return Node(url, self.credentials, store=SqliteStore(self.path))


@pytest.fixture
async def store(jazz: JazzServer, nodes: Nodes, tmp_path: Path) -> _Store:
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
        return _Store(tmp_path / "store", credentials, value.id)


async def test_a_restart_loads_from_disk_and_transfers_only_the_difference(
    jazz: JazzServer, nodes: Nodes, counting_proxy: Proxy, store: _Store
) -> None:
    async with store.node(counting_proxy.url) as node:
        await node.login()
        value = await node.load_map(store.co_id)
        assert content(value) == {"mine": WRITES - 1, "theirs": WRITES - 1}
        await node.flush()
    assert (counting_proxy.transactions("up"), counting_proxy.transactions("down")) == (0, 0)
    async with Node(jazz.url, store.credentials) as elsewhere:
        await elsewhere.login()
        (await elsewhere.load_map(store.co_id)).set("mine", "from elsewhere")
        await elsewhere.flush()
    async with store.node(counting_proxy.url) as node:
        await node.login()
        value = await node.load_map(store.co_id)
        assert value["mine"] == "from elsewhere"
        value.set("mine", "again")
        await node.flush()
    assert (counting_proxy.transactions("up"), counting_proxy.transactions("down")) == (1, 1)
    assert value.history("mine")[-1].session != value.history("mine")[-2].session


async def test_without_a_store_everything_is_transferred(counting_proxy: Proxy, store: _Store) -> None:
    """The reference for the counts of the other test."""
    async with Node(counting_proxy.url, store.credentials) as node:
        await node.login()
        await node.load_map(store.co_id)
    assert counting_proxy.transactions("down") > 2 * WRITES


async def test_unsent_writes_are_sent_by_the_next_process(
    jazz: JazzServer, counting_proxy: Proxy, store: _Store
) -> None:
    """Also values that the next process does not load, including new ones, and only once."""
    async with store.node(counting_proxy.url) as node:
        await node.login()
        value = await node.load_map(store.co_id)
        counting_proxy.deaf = True
        value.set("late", True)
        made, feed = value.group.create_map({"made": "offline"}), value.group.create_feed()
        with pytest.raises(JazzTimeout):
            await node.flush(timeout=0.2)
    counting_proxy.deaf = False
    counting_proxy.seen.clear()
    async with store.node(counting_proxy.url) as node:
        await node.flush()
    assert counting_proxy.transactions("up") == 2
    counting_proxy.seen.clear()
    async with store.node(counting_proxy.url) as node:
        await node.flush()
        assert counting_proxy.transactions("up") == 0
    async with Node(jazz.url, store.credentials) as elsewhere:
        await elsewhere.login()
        assert (await elsewhere.load_map(store.co_id))["late"] is True
        assert content(await elsewhere.load_map(made.id)) == {"made": "offline"}
        assert content(await elsewhere.load_feed(feed.id)) == []


async def test_without_a_connection_stored_values_can_be_read(
    jazz: JazzServer, counting_proxy: Proxy, store: _Store
) -> None:
    async with store.node(counting_proxy.url) as node:
        counting_proxy.cut_after = ("up", 1)
        with pytest.raises(JazzTimeout):
            await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", timeout=0.01)
        await eventually("a lost connection", lambda: not node.connected)
        assert (await node.load_map(store.co_id, timeout=1))["mine"] == WRITES - 1
        with pytest.raises((JazzTimeout, ValueNotFound)):
            await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", timeout=0.05)


async def test_a_server_that_lost_its_data_gets_it_from_the_disk(tmp_path: Path, store: _Store) -> None:
    (tmp_path / "server").mkdir()
    with jazz_server(tmp_path / "server") as empty:
        async with store.node(empty.url) as node:
            await node.login()
            assert (await node.load_map(store.co_id))["theirs"] == WRITES - 1
            async with Node(empty.url, store.credentials) as elsewhere:
                await elsewhere.login()
                assert (await elsewhere.load_map(store.co_id))["theirs"] == WRITES - 1


_WRITER = """
import asyncio, sys
from reside.jazz import Credentials, Node, SqliteStore

async def main(url, secret, path, co_id):
    async with Node(url, Credentials.from_secret(secret), store=SqliteStore(path)) as node:
        await node.login()
        value = await node.load_list(co_id)
        start = len(value)
        for number in range(1_000_000):
            value.append(start + number)
            if number % 7 == 0:
                await node.flush()
                print(len(value), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_the_file_stays_valid_when_the_process_is_killed(jazz: JazzServer, tmp_path: Path) -> None:
    """Kill -9 during writes, several times: what was acknowledged is there, nothing is duplicated or incomplete."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("writer")
        value = node.create_group().create_list([])
        await node.flush()
        co_id = value.id
    path = tmp_path / "store"
    for life in range(4):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _WRITER,
            jazz.url,
            credentials.agent_secret,
            path,
            co_id,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        acknowledged = 0
        async with asyncio.timeout(60):
            for _ in range(3 + 5 * life):
                acknowledged = int(await process.stdout.readline())
            process.send_signal(signal.SIGKILL)
            await process.wait()
        async with Node(jazz.url, credentials, store=SqliteStore(path)) as node:
            await node.login()
            store = await node.load_list(co_id)
            await node.flush()
            items = content(store)
            assert len(items) >= acknowledged
            assert items == list(range(len(items)))


async def test_only_one_process_can_open_a_file(jazz: JazzServer, store: _Store) -> None:
    async with store.node(jazz.url):
        with pytest.raises(StoreFailed, match="another process has it open: stop it, or use another file"):
            async with store.node(jazz.url):
                pass
    async with store.node(jazz.url) as node:
        await node.login()


async def test_a_file_belongs_to_one_account(jazz: JazzServer, store: _Store) -> None:
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
async def test_a_damaged_file_is_named_with_the_cure(kind: str, jazz: JazzServer, store: _Store) -> None:
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
        async with Node(jazz.url, Credentials.generate(), store=store) as node, asyncio.timeout(20):
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
        SqliteStore(tmp_path / "store")._value("co_z1")
    with pytest.raises(StoreFailed, match="unable to open"):
        SqliteStore(tmp_path / "nowhere" / "store")._open("co_z1")
    assert repr(SqliteStore(tmp_path)) == f"<SqliteStore {tmp_path}>"


async def test_evicted_values_are_loaded_from_the_disk(jazz: JazzServer, counting_proxy: Proxy, store: _Store) -> None:
    async with store.node(counting_proxy.url) as node:
        await node.login()
        assert (await node.load_map(store.co_id))["mine"] == WRITES - 1
        node._host.objects.release()
        node._runtime._evict()
        assert node.find(store.co_id) is None
        async with Node(jazz.url, store.credentials) as elsewhere:
            await elsewhere.login()
            (await elsewhere.load_map(store.co_id)).set("mine", "later")
            await elsewhere.flush()
        assert (await node.load_map(store.co_id))["mine"] == "later"
    assert (counting_proxy.transactions("up"), counting_proxy.transactions("down") < 5) == (0, True)
