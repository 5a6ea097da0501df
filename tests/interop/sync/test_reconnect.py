"""The server crashes, returns, is unreachable, or loses data: nothing is lost, nothing hangs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer, jazz_server

from reside.jazz import Credentials, JazzTimeout, JazzUnavailable, Node, NodeClosed, ValueNotFound, WrongKind

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[JazzServer]:
    """Yield a server that only this test uses, and kills."""
    with jazz_server(tmp_path) as started:
        yield started


async def test_nothing_is_lost_when_the_server_is_killed(server: JazzServer) -> None:
    """Writes before, between and after kill -9 all arrive, once, in order, at a connected reader and at a new one."""
    async with Nodes(server.url) as nodes:
        writer, reader = await nodes("writer"), await nodes("reader")
        group = writer.create_group()
        await group.add_member(reader.account_id, "reader")
        mine, feed = group.create_list(), group.create_feed()
        await writer.flush()
        theirs, their_feed = await reader.load_list(mine.id), await reader.load_feed(feed.id)
        expected: list[str] = []
        for life in range(3):
            for number in range(20):
                expected.append(f"{life} running {number}")
                mine.append(expected[-1])
                feed.push(expected[-1])
                await asyncio.sleep(0)
            server.kill()
            for number in range(20):
                expected.append(f"{life} down {number}")
                mine.append(expected[-1])
                feed.push(expected[-1])
                await asyncio.sleep(0)
            made_offline = group.create_map({"life": life})
            server.start()
            await writer.flush()
            await until(theirs, expected)
            await until(their_feed, expected)
            assert content(await reader.load_map(made_offline.id)) == {"life": life}
        late = await nodes("late")
        await group.add_member(late.account_id, "reader")
        await writer.flush()
        assert content(await late.load_list(mine.id)) == expected


async def test_a_server_that_lost_its_data_gets_it_back(server: JazzServer) -> None:
    """Every loaded value is compared after a reconnect, so any node that has the values restores them on the server."""
    async with Nodes(server.url) as nodes:
        writer = await nodes("writer")
        group = writer.create_group()
        await group.add_member("everyone", "reader")
        value = group.create_map({"x": 1})
        await writer.flush()
        server.kill()
        for file in server.folder.glob("jazz.sqlite*"):
            file.unlink()
        server.start()
        value.set("y", 2)
        await writer.flush()
        reader = await nodes("reader")
        assert content(await reader.load_map(value.id)) == {"x": 1, "y": 2}


async def test_a_writer_receives_what_others_wrote_while_it_was_disconnected(server: JazzServer) -> None:
    """Its own unsent writes and those of others cross: both sides end with all of them."""
    async with Nodes(server.url) as nodes:
        one, two = await nodes("one"), await nodes("two")
        group = one.create_group()
        await group.add_member(two.account_id, "writer")
        mine = group.create_map()
        await one.flush()
        theirs = await two.load_map(mine.id)
        server.kill()
        mine.set("one", 1)
        theirs.set("two", 2)
        server.start()
        await asyncio.gather(one.flush(), two.flush())
        await until(mine, {"one": 1, "two": 2})
        await until(theirs, {"one": 1, "two": 2})


async def test_flush_and_load_name_the_missing_connection(server: JazzServer) -> None:
    async with Nodes(server.url) as nodes:
        node = await nodes("one")
        group = node.create_group()
        await node.flush()
        server.kill()
        value = group.create_map({"x": 1})
        with pytest.raises(JazzTimeout, match=rf"1 values not flushed .*{value.id}.*there is no connection"):
            await node.flush(timeout=0.3)
        with pytest.raises(JazzTimeout, match="there is no connection"):
            await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", timeout=0.3)
        assert not node.connected
        server.start()
        await node.flush()
        assert node.connected


async def test_a_first_connection_that_cannot_be_made_is_an_error(server: JazzServer) -> None:
    server.kill()
    with pytest.raises(JazzUnavailable, match=rf"no connection to the sync server {server.url} within 0.4 s"):
        async with Node(server.url, Credentials.generate(), connect_timeout=0.4):
            pass


async def test_a_first_connection_waits_for_a_server_that_starts(server: JazzServer) -> None:
    server.kill()
    node = Node(server.url, Credentials.generate())
    entering = asyncio.create_task(node.__aenter__())
    await asyncio.sleep(0)
    server.start()
    await entering
    assert node.connected
    await node.close()


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "nonsense"])
async def test_an_invalid_url_is_refused_immediately(url: str) -> None:
    with pytest.raises(JazzUnavailable, match="not the URL of a sync server"):
        async with Node(url, Credentials.generate()):
            pass


async def test_pending_calls_fail_when_a_node_is_closed(server: JazzServer) -> None:
    async with Nodes(server.url) as nodes:
        node = await nodes("one")
        value = node.create_group().create_map({"x": 1})
        await node.flush()
        changes = value.watch()
        assert (await anext(changes))["x"] == 1
        server.kill()
        loading = asyncio.create_task(node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"))
        watching = asyncio.create_task(anext(changes))
        value.set("x", 2)
        flushing = asyncio.create_task(node.flush())
        await asyncio.wait([watching], timeout=5)
        watching = asyncio.create_task(anext(changes))
        await asyncio.sleep(0)
        await node.close()
        for task in (loading, watching, flushing):
            with pytest.raises(NodeClosed):
                await task
        with pytest.raises(NodeClosed):
            value.set("x", 3)
        assert not node.connected
        with pytest.raises(NodeClosed, match="opened only once"):
            await node.__aenter__()


async def test_a_missing_value_is_an_error_and_found_once_it_exists(server: JazzServer) -> None:
    async with Nodes(server.url) as nodes:
        one, two = await nodes("one"), await nodes("two")
        group = one.create_group()
        await group.add_member(two.account_id, "reader")
        await one.flush()
        co_id = one.unique_map_id(group.id, "later")
        with pytest.raises(ValueNotFound, match=co_id):
            await two.load(co_id)
        assert await two.find_unique_map(group.id, "later") is None
        waiting = asyncio.create_task(two.load_map(co_id))
        await one.unique_map(group, "later", {"x": 1})
        await one.flush()
        assert content(await waiting) == {"x": 1}
        again = await two.find_unique_map(group.id, "later")
        assert again is not None


async def test_the_wrong_kind_is_named(server: JazzServer) -> None:
    async with Nodes(server.url) as nodes:
        node = await nodes("one")
        group = node.create_group()
        with pytest.raises(WrongKind, match=f"{group.id} is a group, not a map"):
            await node.load_map(group.id)
        with pytest.raises(WrongKind, match="is a map, not a account"):
            await node.load_account(group.create_map({}).id)


async def test_register_is_idempotent_and_completes_an_incomplete_account(server: JazzServer) -> None:
    credentials = Credentials.generate()
    async with Node(server.url, credentials) as node:
        with pytest.raises(ValueNotFound):
            await node.login()
        first = await node.register("first")
        profile = first.profile_id
    async with Node(server.url, credentials) as node:
        again = await node.register("another name")
        assert again.profile_id == profile
        assert again.name == "first"
        assert (await node.login()) is again


async def test_after_a_sync_everything_acknowledged_before_is_visible(server: JazzServer) -> None:
    """What the server acknowledged is visible to every later load, also after the server crashed."""
    async with Nodes(server.url) as nodes:
        one, two = await nodes("one"), await nodes("two")
        group = one.create_group()
        await group.add_member(two.account_id, "reader")
        values = [group.create_map({"n": 0}) for _ in range(5)]
        await one.flush()
        theirs = [await two.load_map(value.id) for value in values]
        for number in range(1, 20):
            for value in values:
                value.set("n", number)
            await one.flush()
            await two.catch_up()
            assert [value["n"] for value in theirs] == [number] * 5
        catching = asyncio.create_task(two.catch_up())
        server.kill()
        server.start()
        await catching
        server.kill()
        with pytest.raises(JazzTimeout, match="not caught up"):
            await two.catch_up(timeout=0.3)
