"""The connection closes after each message of a scenario, in both directions: nothing is lost, doubled or hangs."""

import asyncio
import itertools

import pytest
from interop.proxy import Direction, Proxy, proxy
from support.eventually import eventually
from support.jazz_nodes import content, until
from support.jazz_server import JazzServer

from reside.jazz import CoMap, Credentials, Node

pytestmark = pytest.mark.anyio
AT_ONCE = 8
WITHIN_S = 60.0


async def _scenario(server_url: str, line: Proxy, guest: Credentials) -> None:
    """Let a new account behind the proxy make values that another one, without a proxy, shares and changes."""
    async with Node(server_url, guest) as other, Node(line.url, Credentials.generate()) as writer:
        await other.login()
        await writer.register("writer")
        group = writer.create_group()
        await group.add_member(guest.account_id, "writer")
        mine, items, feed = group.create_map({"first": 0}), group.create_list(["a"]), group.create_feed()
        feed.push("a")
        await writer.flush()
        their_map, their_items = await other.load_map(mine.id), await other.load_list(items.id)
        their_feed = await other.load_feed(feed.id)
        their_map.set("theirs", 1)
        their_items.append("b")
        their_feed.push("b")
        await other.flush()
        await until(mine, {"first": 0, "theirs": 1})
        await until(items, ["a", "b"])
        for number in range(3):
            mine.set("first", number)
            items.append(f"c{number}")
            await asyncio.sleep(0)
        feed.push("c")
        elsewhere = await writer.load_map((await _made_by(other)).id)
        assert content(elsewhere) == {"for": "all"}
        await writer.flush()
        await until(their_map, {"first": 2, "theirs": 1})
        await until(their_items, ["a", "b", "c0", "c1", "c2"])
        await until(their_feed, lambda value: sorted(content(value)) == ["a", "b", "c"])
        await until(feed, lambda value: sorted(content(value)) == ["a", "b", "c"])
        ids = (writer.account_id, group.id, mine.id, items.id, feed.id, elsewhere.id)
        await eventually(
            "equal logs",
            lambda: [co_id for co_id in ids if _counts(writer, co_id) != _counts(other, co_id)],
            lambda different: not different,
        )
    async with Node(server_url, guest) as late:
        await late.login()
        assert content(await late.load_map(mine.id)) == {"first": 2, "theirs": 1}
        assert content(await late.load_list(items.id)) == ["a", "b", "c0", "c1", "c2"]
        assert sorted(content(await late.load_feed(feed.id))) == ["a", "b", "c"]


async def _made_by(node: Node) -> CoMap:
    group = node.create_group()
    await group.add_member("everyone", "reader")
    return group.create_map({"for": "all"})


def _counts(node: Node, co_id: str) -> dict[str, int]:
    return node._host.store.core(co_id).counts()


@pytest.fixture
async def guest(jazz: JazzServer) -> Credentials:
    """Return an account that is there already."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("guest")
    return credentials


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_nothing_is_lost_when_the_connection_closes_after_any_message(
    direction: Direction, jazz: JazzServer, guest: Credentials
) -> None:
    async with proxy(jazz.url) as line:
        await _scenario(jazz.url, line, guest)
        messages = line.count(direction)
    turn = asyncio.Semaphore(AT_ONCE)
    cut = []

    async def run(after: int) -> None:
        async with turn, proxy(jazz.url) as line:
            line.cut_after = (direction, after)
            try:
                async with asyncio.timeout(WITHIN_S):
                    await _scenario(jazz.url, line, guest)
            except Exception as error:
                error.add_note(f"the line was cut after {after} messages {direction}")
                raise
            if line.cut_after is None:
                cut.append(after)

    async with asyncio.TaskGroup() as runs:
        for after in range(messages):
            runs.create_task(run(after))
    assert len(cut) >= messages * 0.9, f"of {messages} cuts, only {sorted(cut)} were made"


async def test_nothing_is_lost_when_many_connections_in_a_row_close(jazz: JazzServer, guest: Credentials) -> None:
    """Connection after connection closes, the first after six messages of the client, each later than the last."""
    async with proxy(jazz.url) as line:

        async def cut_again() -> None:
            for messages in itertools.count(6, 3):
                line.cut_after = ("up", line.count("up") + messages)
                await eventually("the cut", lambda: line.cut_after is None)

        cutting = asyncio.create_task(cut_again())
        try:
            async with asyncio.timeout(WITHIN_S):
                await _scenario(jazz.url, line, guest)
        finally:
            cutting.cancel()
            await asyncio.wait([cutting])
        assert line.connections > 2


async def test_a_slow_connection_loses_nothing(jazz: JazzServer, guest: Credentials) -> None:
    async with proxy(jazz.url) as line:
        line.delay = 0.03
        await _scenario(jazz.url, line, guest)
        assert line.connections == 1


async def test_a_silent_connection_is_replaced(jazz: JazzServer, guest: Credentials) -> None:
    """A connection without pings for a while is given up, although the socket is open."""
    async with proxy(jazz.url) as line, Node(line.url, guest) as node:
        await node.login()
        value = node.create_group().create_map({})
        await node.flush()
        node._runtime._servers.connections[0].transport._silence = 2.5  # the server pings every 1.5 s
        line.deaf = True
        value.set("x", 1)
        await eventually("a lost connection", lambda: not node.connected)
        node._runtime._servers.connections[0].transport._silence = 30.0  # a server on a busy machine may ping late
        line.deaf = False
        await node.flush()
        assert line.connections >= 2  # one more if the next connection was made, and given up, while the line was deaf


async def test_reconnects_to_a_server_that_closes_immediately_have_growing_pauses(jazz: JazzServer) -> None:
    """A line on which nothing came counts as a failure, so that the pauses grow."""
    async with proxy(jazz.url) as line:
        line.refuse = True
        async with Node(line.url, Credentials.generate()) as node:
            await eventually("a fourth connection", lambda: line.connections, lambda count: count == 4)
            assert node._runtime._servers.connections[0].transport._failures >= 3
            line.refuse = False
            await node.register("someone")
            assert node._runtime._servers.connections[0].transport._failures == 0
