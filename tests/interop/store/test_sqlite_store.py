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
async def line(jazz: JazzServer) -> AsyncIterator[Proxy]:
    """Yield a proxy before the server, which counts."""
    async with proxy(jazz.url) as made:
        yield made


class _Kept:
    """A map with many transactions by two accounts, held by one of them in a file."""

    def __init__(self, path: Path, credentials: Credentials, co_id: str) -> None:
        self.path, self.credentials, self.co_id = path, credentials, co_id

    def node(self, url: str) -> Node:
        return Node(url, self.credentials, store=SqliteStore(self.path))


@pytest.fixture
async def kept(jazz: JazzServer, nodes: Nodes, tmp_path: Path) -> _Kept:
    """Written, flushed and closed."""
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
        return _Kept(tmp_path / "store", credentials, value.id)


async def test_a_restart_loads_from_disk_and_moves_only_the_difference(
    jazz: JazzServer, nodes: Nodes, line: Proxy, kept: _Kept
) -> None:
    async with kept.node(line.url) as node:
        await node.login()
        value = await node.load_map(kept.co_id)
        assert content(value) == {"mine": WRITES - 1, "theirs": WRITES - 1}
        await node.flush()
    assert (line.transactions("up"), line.transactions("down")) == (0, 0)
    async with Node(jazz.url, kept.credentials) as elsewhere:
        await elsewhere.login()
        (await elsewhere.load_map(kept.co_id)).set("mine", "from elsewhere")
        await elsewhere.flush()
    async with kept.node(line.url) as node:
        await node.login()
        value = await node.load_map(kept.co_id)
        assert value["mine"] == "from elsewhere"
        value.set("mine", "again")
        await node.flush()
    assert (line.transactions("up"), line.transactions("down")) == (1, 1)
    assert value.history("mine")[-1].session != value.history("mine")[-2].session


async def test_without_a_store_all_is_moved(line: Proxy, kept: _Kept) -> None:
    """What the counts of the other test are worth."""
    async with Node(line.url, kept.credentials) as node:
        await node.login()
        await node.load_map(kept.co_id)
    assert line.transactions("down") > 2 * WRITES


async def test_what_was_not_sent_is_sent_by_the_next_process(jazz: JazzServer, line: Proxy, kept: _Kept) -> None:
    """Also values that the next process does not ask for itself, new ones included, and only once."""
    async with kept.node(line.url) as node:
        await node.login()
        value = await node.load_map(kept.co_id)
        line.deaf = True
        value.set("late", True)
        made, feed = value.group.create_map({"made": "offline"}), value.group.create_feed()
        with pytest.raises(JazzTimeout):
            await node.flush(timeout=0.2)
    line.deaf = False
    line.seen.clear()
    async with kept.node(line.url) as node:
        await node.flush()
    assert line.transactions("up") == 2
    line.seen.clear()
    async with kept.node(line.url) as node:
        await node.flush()
        assert line.transactions("up") == 0
    async with Node(jazz.url, kept.credentials) as elsewhere:
        await elsewhere.login()
        assert (await elsewhere.load_map(kept.co_id))["late"] is True
        assert content(await elsewhere.load_map(made.id)) == {"made": "offline"}
        assert content(await elsewhere.load_feed(feed.id)) == []


async def test_without_a_connection_what_is_on_disk_can_be_read(jazz: JazzServer, line: Proxy, kept: _Kept) -> None:
    async with kept.node(line.url) as node:
        line.cut_after = ("up", 1)
        with pytest.raises(JazzTimeout):
            await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", timeout=0.01)
        await eventually("a lost connection", lambda: not node.connected)
        assert (await node.load_map(kept.co_id, timeout=1))["mine"] == WRITES - 1
        with pytest.raises((JazzTimeout, ValueNotFound)):
            await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", timeout=0.05)


async def test_a_server_that_lost_its_data_gets_it_from_the_disk(tmp_path: Path, kept: _Kept) -> None:
    (tmp_path / "server").mkdir()
    with jazz_server(tmp_path / "server") as empty:
        async with kept.node(empty.url) as node:
            await node.login()
            assert (await node.load_map(kept.co_id))["theirs"] == WRITES - 1
            async with Node(empty.url, kept.credentials) as elsewhere:
                await elsewhere.login()
                assert (await elsewhere.load_map(kept.co_id))["theirs"] == WRITES - 1


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


async def test_killed_at_any_moment_the_file_goes_on(jazz: JazzServer, tmp_path: Path) -> None:
    """Kill -9 in the middle of writing, several times: what was acknowledged is there, nothing twice, nothing torn."""
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
            kept = await node.load_list(co_id)
            await node.flush()
            items = content(kept)
            assert len(items) >= acknowledged
            assert items == list(range(len(items)))


async def test_one_process_has_a_file(jazz: JazzServer, kept: _Kept) -> None:
    async with kept.node(jazz.url):
        with pytest.raises(StoreFailed, match="another process has it open: stop it, or use another file"):
            async with kept.node(jazz.url):
                pass
    async with kept.node(jazz.url) as node:
        await node.login()


async def test_a_file_belongs_to_one_account(jazz: JazzServer, kept: _Kept) -> None:
    with pytest.raises(StoreFailed, match=f"belongs to the account {kept.credentials.account_id}"):
        async with Node(jazz.url, Credentials.generate(), store=SqliteStore(kept.path)):
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
    "another program's": (_changed("PRAGMA application_id = 9"), "a database of something else"),
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_a_broken_file_is_named_with_the_cure(kind: str, jazz: JazzServer, kept: _Kept) -> None:
    damage, message = BROKEN[kind]
    damage(kept.path)

    async def use() -> None:
        async with kept.node(jazz.url) as node:
            await node.login()
            await node.load_map(kept.co_id)

    with pytest.raises(StoreFailed, match=message) as caught:
        await use()
    assert str(kept.path) in str(caught.value)


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


async def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="not open"):
        SqliteStore(tmp_path / "store")._value("co_z1")
    with pytest.raises(StoreFailed, match="unable to open"):
        SqliteStore(tmp_path / "nowhere" / "store")._open("co_z1")
    assert repr(SqliteStore(tmp_path)) == f"<SqliteStore {tmp_path}>"


async def test_what_left_the_memory_comes_back_from_the_disk(jazz: JazzServer, line: Proxy, kept: _Kept) -> None:
    async with kept.node(line.url) as node:
        await node.login()
        assert (await node.load_map(kept.co_id))["mine"] == WRITES - 1
        node._host.objects.release()
        node._runtime._evict()
        assert node.find(kept.co_id) is None
        async with Node(jazz.url, kept.credentials) as elsewhere:
            await elsewhere.login()
            (await elsewhere.load_map(kept.co_id)).set("mine", "later")
            await elsewhere.flush()
        assert (await node.load_map(kept.co_id))["mine"] == "later"
    assert (line.transactions("up"), line.transactions("down") < 5) == (0, True)
