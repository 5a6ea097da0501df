"""The local store: a restart reads the disk and transfers the difference; a damaged file is reported."""

import asyncio
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from interop.proxy import Proxy, proxy
from support.eventually import eventually
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer, jazz_server

from reside.jazz import Credentials, JazzTimeout, Node, SqliteStore, StoreFailed, ValueNotFound
from reside.jazz.ids import CoId

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
        assert (await node.load_map(store.co_id, timeout=30))["mine"] == WRITES - 1
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


class _SlowStore(SqliteStore):
    """A store whose check takes until the test allows it to end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begun, self.may_end = threading.Event(), threading.Event()

    def _open(self, account_id: str) -> None:
        self.begun.set()
        assert self.may_end.wait(20), "the event loop waits for the check"
        super()._open(account_id)


async def test_other_tasks_run_while_a_file_is_checked(jazz: JazzServer, tmp_path: Path) -> None:
    store = _SlowStore(tmp_path / "store")
    asyncio.get_running_loop().call_soon(store.may_end.set)
    async with Node(jazz.url, Credentials.generate(), store=store) as node:
        await node.register("keeper")


async def test_a_file_is_closed_if_its_opening_is_cancelled(jazz: JazzServer, tmp_path: Path) -> None:
    store, credentials = _SlowStore(tmp_path / "store"), Credentials.generate()
    opening = asyncio.create_task(Node(jazz.url, credentials, store=store).__aenter__())
    await eventually("the beginning of the check", store.begun.is_set)
    opening.cancel()
    store.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with Node(jazz.url, credentials, store=store) as node:
        await node.register("keeper")
