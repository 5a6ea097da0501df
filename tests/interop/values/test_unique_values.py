"""Values with computable ids: one for each name, and the earliest first content wins."""

import asyncio
from typing import Any

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, CoFeed, CoList, CoMap, Group, Node, NotPermitted, ValueDeleted
from reside.jazz.wire.header import Unique

pytestmark = pytest.mark.anyio

KINDS = ["map", "list", "feed"]
NAMES: list[Unique] = ["settings", {"b": "2", "a": "ü"}]


async def _unique(node: Node, group: Group, kind: str, name: Unique, by: str | None) -> CoMap | CoList | CoFeed:
    if kind == "map":
        return await node.unique_map(group, name, None if by is None else {"by": by})
    items = [] if by is None else [by, f"{by} too"]
    return await (node.unique_list if kind == "list" else node.unique_feed)(group, name, items)


def _init(kind: str, by: str) -> Any:
    return {"by": by} if kind == "map" else [by, f"{by} too"]


async def _writable(node: Node) -> Group:
    group = node.create_group()
    await group.add_member("everyone", "writer")
    await node.flush()
    return group


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES, ids=["text", "texts"])
async def test_python_and_jazz_tools_get_or_create_the_same_value(
    kind: str, name: Unique, jazz: JazzServer, tools: JavaScript, nodes: Nodes
) -> None:
    python = await nodes("python")
    await tools("login", actor="tools", url=jazz.url, **await tools("create", url=jazz.url, name="tools"))
    group = await _writable(python)
    first = await _unique(python, group, kind, name, "python")
    await python.flush()
    arguments = {"kind": kind, "unique": name, "value": _init(kind, "tools")}
    theirs = await tools("getOrCreate", actor="tools", owner=group.id, **arguments)
    assert theirs == {"id": first.id, "content": _init(kind, "python")}

    other = await _writable(python)
    made = await tools("getOrCreate", actor="tools", owner=other.id, **arguments)
    await tools("flush", actor="tools")
    mine = await _unique(python, other, kind, name, "python")
    assert mine.id == made["id"]
    assert content(mine) == _init(kind, "tools")


@pytest.mark.parametrize("kind", KINDS)
async def test_of_two_concurrent_creators_the_earlier_content_wins_for_all(
    kind: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """Neither has seen the other's value; both clocks are set, and either may be the earlier one."""
    python = await nodes("python")
    await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    for number, shift in enumerate((-50, 50)):
        group = await _writable(python)
        await js("load", actor="js", id=group.id)
        await js("clock", actor="js", at=python.now_ms() + 10_000 + shift)
        value_type = {"map": "comap", "list": "colist", "feed": "costream"}[kind]
        mine = await _unique(python, group, kind, f"race {number}", "python")
        init = _init(kind, "js")
        made = await js("unique", actor="js", group=group.id, type=value_type, name=f"race {number}", init=init)
        assert made == mine.id
        await python.flush()
        await js("flush", actor="js")
        await until(mine, lambda value: len(value.refusals()) == 2)
        await js("until", actor="js", id=made, count=2)
        assert content(mine) == await js("load", actor="js", id=made) == _init(kind, "python")


@pytest.mark.parametrize("kind", KINDS)
async def test_without_content_it_has_one_transaction_that_everyone_can_read(
    kind: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python = await nodes("python")
    group = await _writable(python)
    value = await _unique(python, group, kind, "empty", None)
    await python.flush()
    await js("create", actor="js", url=jazz.url, name="js")
    (message,) = await js("messages", actor="js", id=value.id)
    (session,) = message["new"].values()
    (transaction,) = session["newTransactions"]
    assert transaction["privacy"] == "trusting"
    assert (transaction["changes"], transaction["meta"]) == ("[]", '{"fww":"init"}')
    assert "createdAt" not in message["header"]
    late = [{"op": "set", "key": "by", "value": "late"}] if kind == "map" else []
    if kind == "list":
        late = [{"op": "app", "value": "late", "after": "start"}]
    if kind == "feed":
        late = ["late"]  # type: ignore[list-item] # a feed's changes are its items
    await js("transact", actor="js", id=value.id, changes=late, meta={"fww": "init"})
    await until(value, lambda value: len(value.refusals()) == 2)
    assert not content(value)
    assert not await js("load", actor="js", id=value.id)


async def test_two_nodes_find_the_same_value_or_none(nodes: Nodes) -> None:
    one, two = await nodes("one"), await nodes("two")
    group = await _writable(one)
    theirs = await two.load_group(group.id)
    for kind, find in (("map", two.find_unique_map), ("list", two.find_unique_list), ("feed", two.find_unique_feed)):
        assert await find(group.id, "name") is None
        made = await _unique(one, group, kind, "name", "one")
        assert await _unique(one, group, kind, "name", "again") is made
        await one.flush()
        found = await find(group.id, "name")
        assert found is not None
        assert found.id == made.id
        again = await _unique(two, theirs, kind, "name", "two")
        assert again is found
        assert content(again) == _init(kind, "one")


async def test_a_deleted_unique_value_is_not_created_again(nodes: Nodes) -> None:
    one, two = await nodes("one"), await nodes("two")
    group = await _writable(one)
    await group.add_member(AccountId(two.account_id), "admin")
    value = await one.unique_map(group, "gone", {"a": 1})
    await one.flush()
    value.destroy()
    await one.flush()
    theirs = await two.load_group(group.id)
    for node, owner in ((one, group), (two, theirs)):
        with pytest.raises(ValueDeleted, match=value.id):
            await node.unique_map(owner, "gone", {"a": 2})
        with pytest.raises(ValueDeleted):
            await node.find_unique_map(group.id, "gone")


async def test_an_upsert_creates_a_map_and_writes_only_what_differs(jazz: JazzServer, nodes: Nodes) -> None:
    owner = await nodes("owner")
    group = await _writable(owner)
    made = await owner.upsert_unique_map(group, "settings", {"a": 1, "b": [1]})
    assert content(made) == {"a": 1, "b": [1]}
    made.set("c", "kept")
    count = len(made.refusals())
    assert await owner.upsert_unique_map(group, "settings", {"a": True, "b": [1]}) is made
    assert content(made) == {"a": True, "b": [1], "c": "kept"}
    assert made["a"] is True
    await owner.upsert_unique_map(group, "settings", {"b": [1]})
    assert len(made.refusals()) == count + 1
    await owner.flush()
    other = await nodes("other")
    theirs = await other.upsert_unique_map(await other.load_group(group.id), "settings", {"b": 2})
    assert content(theirs) == {"a": True, "b": 2, "c": "kept"}


async def test_concurrent_upserts_of_a_new_map_are_merged(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    first, second = await nodes("first"), await nodes("second")
    group = await _writable(first)
    same = await second.load_group(group.id)
    one, two = await asyncio.gather(
        first.upsert_unique_map(group, "settings", {"first": 1}),
        second.upsert_unique_map(same, "settings", {"by": "second"}),
    )
    await first.flush()
    await second.flush()
    for value in (one, two):
        await until(value, {"first": 1, "by": "second"})
    await tools("login", actor="tools", url=jazz.url, **await tools("create", url=jazz.url, name="tools"))
    theirs = await tools("getOrCreate", actor="tools", owner=group.id, kind="map", unique="settings", value={"by": "x"})
    assert theirs == {"id": one.id, "content": {"first": 1, "by": "second"}}


async def test_an_upsert_makes_a_list_equal(nodes: Nodes) -> None:
    owner = await nodes("owner")
    group = await _writable(owner)
    made = await owner.upsert_unique_list(group, "steps", ["a", "b"])
    assert content(made) == ["a", "b"]
    assert await owner.upsert_unique_list(group, "steps", iter(["b", "c"])) is made
    assert content(made) == ["b", "c"]
    made.destroy()
    with pytest.raises(ValueDeleted):
        await owner.upsert_unique_list(group, "steps", ["d"])


async def test_an_upsert_by_a_reader_is_refused(nodes: Nodes) -> None:
    owner, reader = await nodes("owner"), await nodes("reader")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    await owner.upsert_unique_map(group, "settings", {"a": 1})
    await owner.flush()
    same = await reader.load_group(group.id)
    assert content(await reader.upsert_unique_map(same, "settings", {"a": 1})) == {"a": 1}
    with pytest.raises(NotPermitted, match="reader"):
        await reader.upsert_unique_map(same, "settings", {"a": 2})
    with pytest.raises(NotPermitted, match="reader"):
        await reader.upsert_unique_map(same, "others", {"a": 2})
