"""A node with two sync servers: each has what the node writes and loads, whichever of them is down at the time."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer, jazz_server

from reside.jazz import Credentials, JazzTimeout, JazzUnavailable, Node, SqliteStore, ValueNotFound

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[JazzServer, JazzServer]]:
    """Yield two servers that know nothing of each other. A test that stops one of them starts it again."""
    with (
        jazz_server(tmp_path_factory.mktemp("one"), MODE="open") as one,
        jazz_server(tmp_path_factory.mktemp("two"), MODE="open") as two,
    ):
        yield one, two


@pytest.fixture
async def node(servers: tuple[JazzServer, JazzServer]) -> AsyncIterator[Node]:
    """Yield a registered node of both servers."""
    async with Node([server.url for server in servers], Credentials.generate()) as node:
        await node.register("both")
        await node.flush()
        yield node


async def test_what_a_node_writes_is_on_each_server(
    servers: tuple[JazzServer, JazzServer], node: Node, js: JavaScript
) -> None:
    group = node.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await node.flush()
    for server in servers:
        await js("create", actor=server.url, url=server.url, name="js")
        assert await js("load", actor=server.url, id=value.id) == {"x": 1}
    value.set("x", 2)
    for server in servers:
        await js("until", actor=server.url, id=value.id, expected={"x": 2})


async def test_what_a_client_of_one_server_writes_reaches_the_clients_of_the_other(
    servers: tuple[JazzServer, JazzServer], node: Node, js: JavaScript
) -> None:
    group = node.create_group()
    await group.add_member("everyone", "writer")
    value = group.create_map({"x": 0})
    await node.flush()
    actors = [f"client of {server.url}" for server in servers]
    for actor, server in zip(actors, servers, strict=True):
        await js("create", actor=actor, url=server.url, name="js")
        await js("load", actor=actor, id=value.id)
    for number, (actor, other) in enumerate([actors, reversed(actors)], start=1):
        await js("set", actor=actor, id=value.id, key="x", value=number)
        await until(value, {"x": number})
        await js("until", actor=other, id=value.id, expected={"x": number})


async def test_a_value_of_either_server_is_loaded(servers: tuple[JazzServer, JazzServer], node: Node) -> None:
    for server in servers:
        async with Nodes(server.url) as nodes:
            writer = await nodes("writer")
            group = writer.create_group()
            await group.add_member("everyone", "reader")
            value = group.create_map({"url": server.url})
            await writer.flush()
        assert content(await node.load_map(value.id)) == {"url": server.url}
    with pytest.raises(ValueNotFound, match="does not have it"):
        await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp")


async def test_a_server_that_is_down_gets_everything_when_it_returns(
    servers: tuple[JazzServer, JazzServer], node: Node
) -> None:
    """Meanwhile, the other one serves; only a flush waits, and names the server."""
    first, second = servers
    group = node.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await node.flush()
    for down, up in ((first, second), (second, first)):
        down.kill()
        value.set("x", down.url)
        try:
            with pytest.raises(JazzTimeout, match=rf"1 values not flushed .*there is no connection to {down.url}"):
                await node.flush(timeout=0.5)
            await node.catch_up()
            async with Nodes(up.url) as nodes:
                assert content(await (await nodes("reader")).load_map(value.id)) == {"x": down.url}
                with pytest.raises(ValueNotFound, match="does not have it"):
                    await node.load("co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp")
        finally:
            down.start()
        await node.flush()
        async with Nodes(down.url) as nodes:
            assert content(await (await nodes("reader")).load_map(value.id)) == {"x": down.url}


async def test_a_node_opens_while_one_server_is_down(servers: tuple[JazzServer, JazzServer], tmp_path: Path) -> None:
    """What that server missed is in the local store, also for the next process."""
    _, second = servers
    credentials, urls = Credentials.generate(), [server.url for server in servers]
    async with Node(urls, credentials, store=SqliteStore(tmp_path / "node.db")) as node:
        await node.register("both")
    second.kill()
    try:
        async with Node(urls, credentials, store=SqliteStore(tmp_path / "node.db")) as node:
            await node.login()
            group = node.create_group()
            await group.add_member("everyone", "reader")
            value = group.create_map({"x": 1})
            with pytest.raises(JazzTimeout):
                await node.flush(timeout=0.5)
    finally:
        second.start()
    async with Node(urls, credentials, store=SqliteStore(tmp_path / "node.db")) as node:
        await node.login()
        await node.flush()
    async with Nodes(second.url) as nodes:
        assert content(await (await nodes("reader")).load_map(value.id)) == {"x": 1}


async def test_an_error_names_each_server_that_cannot_be_reached() -> None:
    urls = ["ws://127.0.0.1:9", "ws://user:secret@127.0.0.1:10"]
    with pytest.raises(
        JazzUnavailable, match=r"any of the sync servers within 0\.2 s: ws://127\.0\.0\.1:9 .*, ws://127\.0\.0\.1:10 "
    ) as raised:
        async with Node(urls, Credentials.generate(), connect_timeout=0.2):
            pass
    assert "secret" not in str(raised.value)


async def test_many_nodes_of_both_servers_agree(servers: tuple[JazzServer, JazzServer]) -> None:
    """Each node passes on what it hears from one server to the other; then all are silent."""
    urls = [server.url for server in servers]
    async with Nodes(urls) as nodes:
        writers = [await nodes(f"writer {number}") for number in range(4)]
        group = writers[0].create_group()
        await group.add_member("everyone", "writer")
        made = group.create_list()
        await writers[0].flush()
        lists = [await writer.load_list(made.id) for writer in writers]
        for number in range(25):
            for place, value in enumerate(lists):
                value.append(f"{place}.{number}")
            await asyncio.sleep(0)
        await asyncio.gather(*(writer.flush() for writer in writers))
        await asyncio.gather(*(writer.catch_up() for writer in writers))
        assert sorted(content(made)) == sorted(f"{place}.{number}" for place in range(4) for number in range(25))
        for value in lists[1:]:
            await until(value, content(made))
