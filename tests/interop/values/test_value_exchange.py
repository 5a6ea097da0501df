"""Values, groups and accounts written by Python are read by the official JavaScript client, and vice versa."""

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, Credentials, Node, NotPermitted

pytestmark = pytest.mark.anyio

SAMPLE = {
    "text": "grüße \u2028 \U0001f600",
    "number": 1.5,
    "big": 2**53,
    "no": False,
    "nothing": None,
    "list": [1, [2, {"a": "b"}]],
    "map": {"z": 1, "a": {}},
}


async def test_javascript_reads_what_python_wrote_and_writes_back(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python = await nodes("python")
    other = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    group = python.create_group("shared")
    await group.add_member(AccountId(other["accountID"]), "writer")
    a_map, a_list, a_feed = group.create_map(SAMPLE), group.create_list([1, "two", {"three": 3}]), group.create_feed()
    a_feed.push({"hello": 1})
    a_feed.push("again")
    await python.flush()

    assert await js("load", actor="js", id=a_map.id) == SAMPLE
    assert await js("load", actor="js", id=a_list.id) == [1, "two", {"three": 3}]
    assert await js("load", actor="js", id=a_feed.id) == [{"hello": 1}, "again"]
    assert await js("roleOf", actor="js", group=group.id, account=other["accountID"]) == "writer"

    await js("set", actor="js", id=a_map.id, key="text", value="answered")
    await js("del", actor="js", id=a_map.id, key="number")
    await js("prepend", actor="js", id=a_list.id, value="zero", before=0)
    await js("remove", actor="js", id=a_list.id, at=1)
    await js("push", actor="js", id=a_feed.id, value="from js")
    await until(a_list, ["zero", "two", {"three": 3}])
    await until(a_feed, [{"hello": 1}, "again", "from js"])
    await until(a_map, lambda value: value.get("text") == "answered" and "number" not in value)
    edit = a_map.edit("text")
    assert edit is not None
    assert edit.by == other["accountID"]


async def test_python_reads_what_javascript_wrote_and_writes_back(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python = await nodes("python")
    await python.flush()
    await js("create", actor="js", url=jazz.url, name="js")
    group = await js("group", actor="js", name="theirs")
    await js("addMember", actor="js", group=group, account=python.account_id, role="writer")
    a_map = await js("map", actor="js", group=group, init=SAMPLE)
    a_list = await js("list", actor="js", group=group, init=["a", "b", "c"])
    a_feed = await js("feed", actor="js", group=group)
    await js("push", actor="js", id=a_feed, value={"n": 1})
    await js("flush", actor="js")

    theirs = await python.load_group(group)
    assert theirs.name == "theirs"
    assert theirs.my_role == "writer"
    mine_map, mine_list = await python.load_map(a_map), await python.load_list(a_list)
    mine_feed = await python.load_feed(a_feed)
    assert content(mine_map) == SAMPLE
    assert content(mine_list) == ["a", "b", "c"]
    assert content(mine_feed) == [{"n": 1}]

    mine_map.update({"text": "python", "new": [1]})
    mine_list.insert(1, "between")
    mine_list.extend(["x", "y"])
    mine_list.remove(0)
    mine_feed.push("python")
    await js("until", actor="js", id=a_map, expected=SAMPLE | {"text": "python", "new": [1]})
    await js("until", actor="js", id=a_list, expected=["between", "b", "c", "x", "y"])
    await js("until", actor="js", id=a_feed, expected=[{"n": 1}, "python"])


async def test_javascript_logs_in_with_an_account_made_in_python(jazz: JazzServer, js: JavaScript) -> None:
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as python:
        await python.register("made in python")
    login = {"accountID": credentials.account_id, "accountSecret": credentials.agent_secret}
    assert await js("login", actor="same", url=jazz.url, **login) == {"name": "made in python"}
    group = await js("group", actor="same")
    a_map = await js("map", actor="same", group=group, init={"by": "js"})
    await js("flush", actor="same")
    async with Node(jazz.url, credentials) as python:
        await python.login()
        assert content(await python.load_map(a_map)) == {"by": "js"}


async def test_python_logs_in_with_an_account_made_in_javascript(jazz: JazzServer, js: JavaScript) -> None:
    made = await js("create", actor="js", url=jazz.url, name="made in js")
    await js("flush", actor="js")
    credentials = Credentials.from_secret(made["accountSecret"])
    assert credentials.account_id == made["accountID"]
    async with Node(jazz.url, credentials) as python:
        account = await python.login()
        assert account.name == "made in js"
        group = python.create_group()
        a_map = group.create_map({"by": "python"})
        await python.flush()
    assert await js("load", actor="js", id=a_map.id) == {"by": "python"}


async def test_both_compute_the_same_unique_map(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python = await nodes("python")
    group = python.create_group()
    unique = await python.unique_map(group, "settings", {"a": 1})
    await python.flush()
    header = {
        "type": "comap",
        "ruleset": {"type": "ownedByGroup", "group": group.id},
        "meta": None,
        "uniqueness": "settings",
    }
    assert await js("header", header=header) == unique.id == python.unique_map_id(group.id, "settings")


async def test_of_two_first_writers_of_a_unique_map_the_earlier_wins_on_both_sides(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """Each creates the same map without having seen the other's; `fww` decides."""
    python = await nodes("python")
    group = python.create_group()
    await group.add_member("everyone", "writer")
    unique = await python.unique_map(group, "race", {"from": "python"})
    await python.flush()
    other = await js("create", actor="js", url=jazz.url, name="js")
    assert other["accountID"] != python.account_id
    changes = [{"op": "set", "key": "from", "value": "js"}, {"op": "set", "key": "late", "value": 1}]
    await js("transact", actor="js", id=unique.id, changes=changes, meta={"fww": "init"})
    await js("set", actor="js", id=unique.id, key="after", value=True)
    await js("until", actor="js", id=unique.id, expected={"from": "python", "after": True})
    await until(unique, {"from": "python", "after": True})


async def test_a_write_without_permission_is_refused_in_python(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python = await nodes("python")
    await js("create", actor="js", url=jazz.url, name="js")
    group = await js("group", actor="js")
    await js("addMember", actor="js", group=group, account=python.account_id, role="reader")
    a_map = await js("map", actor="js", group=group, init={"x": 1})
    await js("flush", actor="js")
    mine = await python.load_map(a_map)
    with pytest.raises(NotPermitted, match=r"role in group co_z\w+ is reader, needs writer") as refused:
        mine.set("x", 2)
    assert refused.value.role == "reader"
    assert content(mine) == {"x": 1}
