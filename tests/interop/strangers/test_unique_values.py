"""Anyone can compute the id of a unique value and upload its header first: the owner's first content counts anyway."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from interop.open_server import needs_open_server
from interop.strangers.stranger import set_key, stranger, trusting
from support.jazz_nodes import content, until

from reside.jazz import Credentials, Node, SqliteStore
from reside.jazz.typed import CoMapModel
from reside.jazz.wire.header import unique_header

if TYPE_CHECKING:
    from pathlib import Path

    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

    from reside.jazz import Group

pytestmark = pytest.mark.anyio

INIT = {"x": 1}
TAKEN = {
    "only the header": [],
    "first content": [trusting([set_key("x", "forged")], made_at=1, meta='{"fww":"init"}')],
    "content without meta": [trusting([set_key("x", "forged")], made_at=1)],
}


class Settings(CoMapModel):
    """A typed unique value."""

    x: int


async def _take(jazz: JazzServer, group: Group, transactions: list[dict[str, Any]], kind: Any = "comap") -> str:
    header = unique_header(kind, group.id, "name")
    async with stranger(jazz.url) as who:
        if transactions:
            await who.write(header.co_id, transactions, header=dict(header.raw))
        else:
            message = {"action": "content", "id": header.co_id, "priority": 3, "header": dict(header.raw), "new": {}}
            await who.send(message)
        assert len(await who.sessions(header.co_id)) == bool(transactions)
    return header.co_id


async def _shared_group(owner: Node) -> Group:
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    await owner.flush()
    return group


@needs_open_server
@pytest.mark.parametrize("taken", TAKEN)
async def test_a_map_that_a_stranger_made_first_gets_its_first_content(
    taken: str, jazz: JazzServer, nodes: Nodes, js: JavaScript
) -> None:
    owner = await nodes("owner")
    group = await _shared_group(owner)
    co_id = await _take(jazz, group, TAKEN[taken])
    assert await owner.find_unique_map(group.id, "name") is None
    value = await owner.unique_map(group, "name", INIT)
    assert value.id == co_id
    assert content(value) == INIT
    assert await owner.unique_map(group, "name", {"x": 2}) is value
    await owner.flush()
    reader = await nodes("reader")
    found = await reader.find_unique_map(group.id, "name")
    assert content(found) == INIT
    await js("create", actor="reader", url=jazz.url, name="reader")
    await js("until", actor="reader", id=co_id, expected=INIT)


async def test_it_gets_it_after_a_restart_with_a_store(jazz: JazzServer, nodes: Nodes, tmp_path: Path) -> None:
    """The first node only received the stranger's header; the second one has it in its store."""
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "jazz.db")) as owner:
        await owner.register("owner")
        group = await _shared_group(owner)
        await _take(jazz, group, [])
        assert await owner.find_unique_map(group.id, "name") is None
    again = await nodes.again(credentials, store=SqliteStore(tmp_path / "jazz.db"))
    value = await again.unique_map(await again.load_group(group.id), "name", INIT)
    assert content(value) == INIT


async def test_of_two_owners_that_take_it_over_at_once_the_earliest_wins(jazz: JazzServer, nodes: Nodes) -> None:
    one, two = await nodes("one"), await nodes("two")
    group = await _shared_group(one)
    await group.add_member(two.account_id, "writer")
    await one.flush()
    theirs = await two.load_group(group.id)
    await _take(jazz, group, [])
    first, second = await asyncio.gather(
        one.unique_map(group, "name", {"x": 1}), two.unique_map(theirs, "name", {"x": 2})
    )
    await one.flush()
    await two.flush()
    reader = await nodes("reader")
    expected = content(await reader.find_unique_map(group.id, "name"))
    assert expected in ({"x": 1}, {"x": 2})
    await until(first, expected)
    await until(second, expected)


async def test_lists_feeds_and_typed_values_are_taken_over_too(jazz: JazzServer, nodes: Nodes) -> None:
    owner = await nodes("owner")
    group = await _shared_group(owner)
    for kind in ("colist", "costream", "comap"):
        await _take(jazz, group, [], kind)
    assert content(await owner.unique_list(group, "name", [1, 2])) == [1, 2]
    assert content(await owner.unique_feed(group, "name", ["a"])) == ["a"]
    assert await Settings.load_unique(group, "name") is None
    settings = await Settings(x=1).get_or_create_unique(group, "name")
    assert settings.x == 1


async def test_a_reader_does_not_take_over(jazz: JazzServer, nodes: Nodes) -> None:
    owner, reader = await nodes("owner"), await nodes("reader")
    group = await _shared_group(owner)
    await _take(jazz, group, [])
    assert await reader.find_unique_map(group.id, "name") is None
