"""Branches are the same values for both clients: made, read, written and merged by either."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from interop.javascript import JavaScript
from interop.open_server import needs_open_server
from interop.strangers.stranger import stranger
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer

from reside.jazz import (
    AccountId,
    CoList,
    CoMap,
    CoPlainText,
    Credentials,
    Group,
    InvalidArgument,
    Node,
    NotPermitted,
    SqliteStore,
)
from reside.jazz.values.branching import start_meta
from reside.jazz.wire.header import branch_header, parse_header

pytestmark = pytest.mark.anyio


async def _both(jazz: JazzServer, js: JavaScript, nodes: Nodes, role: Any = "writer") -> tuple[Node, Group]:
    """Return a node, and a group of it in which the JavaScript actor `js` has a role."""
    python = await nodes("python")
    other = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    group = python.create_group()
    await group.add_member(AccountId(other["accountID"]), role)
    await python.flush()
    return python, group


def _make(kind: str, group: Group) -> CoMap | CoList | CoPlainText:
    if kind == "map":
        return group.create_map({"a": 1, "b": 1})
    return group.create_list(["a", "b"]) if kind == "list" else group.create_text("ab")


def _edit(value: Any) -> None:
    if isinstance(value, CoMap):
        value.set("python", True)
        value.delete("a")
    elif isinstance(value, CoList):
        value.append("python")
        value.remove(0)
    else:
        value.append("python")
        value.delete_range(0, 1)


JS_EDIT = {
    "map": 'value.set("js", true); value.set("b", 2);',
    "list": 'value.append("js", 0); value.prepend("first");',
    "text": 'value.insertAfter(0, "js");',
}


@pytest.mark.parametrize("kind", ["map", "list", "text"])
async def test_a_branch_of_python_is_continued_by_javascript(
    kind: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group = await _both(jazz, js, nodes)
    value = _make(kind, group)
    branch: Any = await value.branch("draft")
    assert (branch.branch_name, branch.source, value.branch_name, value.source) == ("draft", value, None, None)
    assert content(branch) == content(value)
    original = content(value)
    _edit(branch)
    await python.flush()
    assert await js("branch", actor="js", id=value.id, name="draft") == branch.id
    await js("until", actor="js", id=branch.id, expected=content(branch))
    await js("run", actor="js", id=branch.id, body=JS_EDIT[kind])
    await until(branch, await js("load", actor="js", id=branch.id))
    assert content(value) == original == await js("load", actor="js", id=value.id)

    branch.merge()
    assert content(value) == content(branch)
    await js("until", actor="js", id=value.id, expected=content(branch))


@pytest.mark.parametrize("kind", ["map", "list", "text"])
async def test_a_branch_of_javascript_is_continued_by_python(
    kind: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group = await _both(jazz, js, nodes)
    value = _make(kind, group)
    await python.flush()
    made = await js("branch", actor="js", id=value.id, name="draft")
    await js("run", actor="js", id=made, body=JS_EDIT[kind])
    await js("flush", actor="js")
    branch: Any = await value.branch("draft")
    assert branch.id == made
    await until(branch, await js("load", actor="js", id=made))
    _edit(branch)
    await js("until", actor="js", id=made, expected=content(branch))
    await js("mergeBranch", actor="js", id=made)
    await until(value, content(branch))

    _edit(branch)
    branch.merge()
    await js("until", actor="js", id=value.id, expected=content(value))
    assert content(value) == content(branch)


async def test_later_writes_to_the_source_are_not_in_the_branch(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    """But, as in JavaScript, the next transaction of each session is, and those of a session that was new."""
    python, group = await _both(jazz, js, nodes)
    value = group.create_map({"a": 1})
    branch = await value.branch("draft")
    for number in range(2, 6):
        value.set("a", number)
        value.set(f"key {number}", number)
    await python.flush()
    await js("run", actor="js", id=value.id, body='value.set("js", true);')
    await until(value, {"a": 5, **{f"key {number}": number for number in range(2, 6)}, "js": True})
    expected = await js("load", actor="js", id=branch.id)
    assert "key 5" not in expected
    await until(branch, expected)


async def test_a_merge_does_not_overwrite_what_was_written_later(nodes: Nodes) -> None:
    now = 1_700_000_000_000
    clock = lambda: now  # noqa: E731 - the test moves it
    node = await nodes("python", clock=clock)
    value = node.create_group().create_map({"a": 1, "b": 1})
    now += 1000
    branch = await value.branch("draft")
    branch.set("a", "branch")
    now += 1000
    value.set("a", "source")
    now += 1000
    branch.set("b", "branch")
    branch.merge()
    assert value.as_dict() == {"a": "source", "b": "branch"}
    assert value.history("b")[-1].at == now


async def test_a_repeated_or_concurrent_merge_changes_nothing(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    value = group.create_list(["a"])
    branch = await value.branch("draft")
    branch.extend(["b", "c"])
    await python.flush()
    await js("load", actor="js", id=branch.id)
    branch.merge()
    await js("mergeBranch", actor="js", id=branch.id)
    await js("flush", actor="js")
    await python.flush()
    written = len(value.refusals())
    branch.merge()
    assert len(value.refusals()) == written
    await js("until", actor="js", id=value.id, expected=["a", "b", "c"])
    await until(value, ["a", "b", "c"])
    branch.append("d")
    branch.merge()
    await js("until", actor="js", id=value.id, expected=["a", "b", "c", "d"])


async def test_branches_of_branches_are_read_and_merged(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    value = group.create_list(["a", "b"])
    first = await value.branch("first")
    first.append("first")
    second = await first.branch("second")
    second.insert(1, "second")
    await python.flush()
    assert await js("load", actor="js", id=second.id) == ["a", "second", "b", "first"] == second.as_list()
    reader = await nodes("reader")
    await group.add_member(reader.account.id, "reader")
    await python.flush()
    assert (await reader.load_list(second.id)).as_list() == second.as_list()
    second.merge()
    assert first.as_list() == second.as_list()
    first.merge()
    assert value.as_list() == second.as_list()
    await js("until", actor="js", id=value.id, expected=value.as_list())


async def test_a_reader_branches_into_a_group_of_its_own(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes, "reader")
    value = group.create_map({"a": 1})
    await python.flush()
    credentials = Credentials.generate()
    reader = await nodes.again(credentials, register=True)
    await group.add_member(reader.account.id, "reader")
    await python.flush()
    theirs = await reader.load_map(value.id)
    with pytest.raises(NotPermitted, match="make a branch of"):
        await theirs.branch("mine")
    own = reader.create_group()
    branch = await theirs.branch("mine", owner=own)
    branch.set("a", 2)
    await reader.flush()
    assert branch.as_dict() == {"a": 2}
    with pytest.raises(NotPermitted, match="write to"):
        branch.merge()
    assert await theirs.branch("mine", owner=own) is branch
    again = await nodes.again(credentials)
    value_again = await again.load_map(value.id)
    assert (await value_again.branch("mine", owner=await again.load_group(own.id))).as_dict() == {"a": 2}
    mine = (await js("create", actor="owner", url=jazz.url, name="owner"))["accountID"]
    await js("flush", actor="owner")
    await own.add_member(AccountId(mine), "reader")
    await group.add_member(AccountId(mine), "writer")
    await python.flush()
    await reader.flush()
    assert await js("branch", actor="owner", id=value.id, name="mine", owner=own.id) == branch.id
    assert await js("load", actor="owner", id=branch.id) == {"a": 2}


async def test_what_removes_a_source_s_content_removes_it_from_the_branch(nodes: Nodes) -> None:
    """A branch is validated with the source: a role that turns out to be invalid takes its writes from both."""
    admin, writer = await nodes("admin"), await nodes("writer")
    group = admin.create_group()
    await group.add_member(writer.account.id, "writer")
    value = group.create_map({"a": 1})
    await admin.flush()
    theirs = await writer.load_map(value.id)
    theirs.set("b", 1)
    await writer.flush()
    await until(value, {"a": 1, "b": 1})
    branch = await value.branch("draft")
    assert branch.as_dict() == {"a": 1, "b": 1}
    value.destroy()
    assert (value.as_dict(), branch.as_dict()) == ({}, {})


async def test_a_branch_is_restored_from_a_local_store(jazz: JazzServer, nodes: Nodes, tmp_path: Path) -> None:
    credentials = Credentials.generate()
    node = await nodes.again(credentials, register=True)
    value = node.create_group().create_map({"a": 1})
    branch = await value.branch("draft")
    branch.set("b", 2)
    await node.flush()
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as other:
        await other.login()
        assert (await other.load_map(branch.id)).as_dict() == {"a": 1, "b": 2}
        await other.drain()
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as other:
        await other.login()
        loaded = await other.load_map(branch.id)
        assert loaded.as_dict() == {"a": 1, "b": 2}
        loaded.merge()
        await other.flush()
    await until(value, {"a": 1, "b": 2})


async def test_a_watched_branch_yields_what_is_missing_of_its_source(nodes: Nodes) -> None:
    maker, other = await nodes("maker"), await nodes("other")
    group = maker.create_group()
    await group.add_member(other.account.id, "writer")
    value = group.create_map({"a": 1})
    await maker.flush()
    theirs = await other.load_map(value.id)
    value.set("b", 1)  # the other node does not have it when it makes the branch of the same name
    branch, same = await value.branch("draft"), await theirs.branch("draft")
    assert branch.id == same.id
    await asyncio.gather(maker.flush(), other.flush())
    await until(same, {"a": 1, "b": 1})
    await until(branch, {"a": 1, "b": 1})


async def test_what_can_not_be_branched_or_merged_is_refused(nodes: Nodes) -> None:
    node = await nodes("python")
    group = node.create_group()
    value = group.create_map({"a": 1})
    with pytest.raises(InvalidArgument, match="is not a branch"):
        value.merge()
    with pytest.raises(InvalidArgument, match="the name of a branch must not be empty"):
        await value.branch("")
    file = group.open_file("text/plain")
    with pytest.raises(InvalidArgument, match="can't have branches"):
        await file.branch("draft")


async def test_values_that_a_branch_refers_to_are_not_branched(nodes: Nodes) -> None:
    group = (await nodes("python")).create_group()
    inner = group.create_map({"a": 1})
    branch = await group.create_map({"inner": inner.id}).branch("draft")
    assert branch["inner"] == inner.id


async def test_a_branch_of_a_group_has_only_its_own_changes(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    """No client makes one, but anyone can upload its header. JavaScript shows the members as keys of the map."""
    python, group = await _both(jazz, js, nodes)
    ruleset = {"type": "ownedByGroup", "group": group.id}
    meta = {"branch": "draft", "source": group.id}
    header = parse_header({"type": "comap", "ruleset": ruleset, "meta": meta, "uniqueness": ""})
    branch = python._host.creator.branch(header, CoMap)
    branch.set("a", 1)
    branch._write([], start_meta(branch._host.store.core(group.id).counts()))
    await python.flush()
    assert branch.as_dict() == {"a": 1}
    shown = await js("load", actor="js", id=branch.id)
    assert shown["a"] == 1
    assert shown[python.account.id] == "admin"


async def test_a_long_chain_of_branches_is_read(nodes: Nodes) -> None:
    node = await nodes("python")
    branch = node.create_group().create_map({"first": 0})
    for number in range(150):
        branch = await branch.branch(f"branch {number}")
    branch.set("last", 1)
    await node.flush()
    other = await nodes("other")
    await branch.group.add_member(other.account.id, "reader")
    await node.flush()
    assert (await other.load_map(branch.id)).as_dict() == {"first": 0, "last": 1} == branch.as_dict()


@needs_open_server
async def test_a_branch_that_somebody_else_uploaded_first_is_started(jazz: JazzServer, nodes: Nodes) -> None:
    """Its id is computable. Without a start it would show nothing of its source."""
    node = await nodes("python")
    value = node.create_group().create_map({"a": 1})
    await node.flush()
    source = value._core.header
    assert source is not None
    header = branch_header(source, value.group.id, "draft")
    async with stranger(jazz.url) as who:
        await who.send({"action": "content", "id": header.co_id, "priority": 3, "header": dict(header.raw), "new": {}})
        await who.sessions(header.co_id)
        assert (await node.load_map(header.co_id)).as_dict() == {}
    branch = await value.branch("draft")
    assert branch.id == header.co_id
    assert branch.as_dict() == {"a": 1}
