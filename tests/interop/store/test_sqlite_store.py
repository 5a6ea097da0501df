"""The local store: a restart reads the disk and transfers the difference."""

import asyncio
import signal
import sys
import threading
from pathlib import Path

import pytest
from interop.proxy import Proxy
from interop.store.conftest import WRITES, Store
from support.eventually import eventually
from support.jazz_nodes import Nodes, content
from support.jazz_server import JazzServer, jazz_server

from reside.jazz import Credentials, JazzTimeout, Node, SqliteStore, ValueNotFound

pytestmark = pytest.mark.anyio


async def test_a_restart_loads_from_disk_and_transfers_only_the_difference(
    jazz: JazzServer, nodes: Nodes, counting_proxy: Proxy, store: Store
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


async def test_without_a_store_everything_is_transferred(counting_proxy: Proxy, store: Store) -> None:
    """The reference for the counts of the other test."""
    async with Node(counting_proxy.url, store.credentials) as node:
        await node.login()
        await node.load_map(store.co_id)
    assert counting_proxy.transactions("down") > 2 * WRITES


async def test_unsent_writes_are_sent_by_the_next_process(
    jazz: JazzServer, counting_proxy: Proxy, store: Store
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
    jazz: JazzServer, counting_proxy: Proxy, store: Store
) -> None:
    async with store.node(counting_proxy.url) as node:
        counting_proxy.cut_after = ("up", 1)
        with pytest.raises(JazzTimeout):
            await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", timeout=0.01)
        await eventually("a lost connection", lambda: not node.connected)
        assert (await node.load_map(store.co_id, timeout=30))["mine"] == WRITES - 1
        with pytest.raises((JazzTimeout, ValueNotFound)):
            await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", timeout=0.05)


async def test_a_server_that_lost_its_data_gets_it_from_the_disk(tmp_path: Path, store: Store) -> None:
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


async def test_evicted_values_are_loaded_from_the_disk(jazz: JazzServer, counting_proxy: Proxy, store: Store) -> None:
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
