"""Deleted values: each side respects the other's markers, and only an admin deletes."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from interop.javascript import JavaScript, JavaScriptError
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, Credentials, Group, Node, NotPermitted, SqliteStore, ValueDeleted

pytestmark = pytest.mark.anyio


async def _shared(jazz: JazzServer, js: JavaScript, nodes: Nodes, role: Any) -> tuple[Node, Group]:
    """Return a node, and a group of it in which the JavaScript actor `js` has a role."""
    python = await nodes("python")
    other = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    group = python.create_group()
    await group.add_member(AccountId(other["accountID"]), role)
    await python.flush()
    return python, group


async def test_what_python_deletes_is_deleted_in_javascript(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _shared(jazz, js, nodes, "writer")
    value = group.create_map({"a": 1})
    await python.flush()
    assert await js("load", actor="js", id=value.id) == {"a": 1}
    value.destroy()
    assert value.deleted
    assert content(value) == {}
    await python.flush()
    await js("untilDeleted", actor="js", id=value.id)
    await js("create", actor="fresh", url=jazz.url, name="fresh")
    assert await js("isDeleted", actor="fresh", id=value.id)
    sessions = (await js("knownState", actor="fresh", id=value.id))["sessions"]
    assert [session.rpartition("_session_")[2][0] for session in sessions] == ["d"]
    assert list(sessions.values()) == [1]


async def test_what_javascript_deletes_is_deleted_in_python(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _shared(jazz, js, nodes, "admin")
    value = group.create_list(["a", "b"])
    await python.flush()
    await js("delete", actor="js", id=value.id)
    await until(value, lambda value: value.deleted)
    assert content(value) == []
    with pytest.raises(ValueDeleted, match=value.id):
        value.append("c")
    value.destroy()  # a second time has no effect
    await python.flush()
    other = await nodes("other")
    with pytest.raises(ValueDeleted, match="an admin of its group deleted it"):
        await other.load_list(value.id)
    with pytest.raises(ValueDeleted):
        await python.load(value.id)


async def test_a_write_concurrent_with_a_deletion_is_void_and_not_awaited(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group = await _shared(jazz, js, nodes, "admin")
    value = group.create_map({"a": 1})
    await python.flush()
    await js("load", actor="js", id=value.id)
    await js("delete", actor="js", id=value.id)
    await js("flush", actor="js")
    if not value.deleted:
        value.set("a", 2)
    await python.flush()
    await until(value, lambda value: value.deleted)
    value.destroy()
    other = group.create_map({"b": 1})
    await python.flush()
    assert await js("load", actor="js", id=other.id) == {"b": 1}


async def test_only_an_admin_deletes(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _shared(jazz, js, nodes, "manager")
    value = group.create_map({"a": 1})
    await python.flush()
    with pytest.raises(JavaScriptError, match="lacks admin permissions"):
        await js("delete", actor="js", id=value.id)
    theirs = await js("group", actor="js")
    await js("addMember", actor="js", group=theirs, account=python.account_id, role="manager")
    their_map = await js("map", actor="js", group=theirs, init={"b": 2})
    await js("flush", actor="js")
    mine = await python.load_map(their_map)
    with pytest.raises(NotPermitted, match=r"delete co_z\w+: role in group co_z\w+ is manager, needs admin"):
        mine.destroy()
    assert not mine.deleted


async def test_a_forged_deletion_deletes_nothing_and_is_reported_with_its_reason(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    """A writer sends the marker anyway; the server refuses it like the author's own node."""
    python, group = await _shared(jazz, js, nodes, "admin")
    value = group.create_map({"a": 1})
    writer = await nodes("writer")
    await group.add_member(AccountId(writer.account_id), "writer")
    await python.flush()
    theirs = await writer.load_map(value.id)
    writer._host.writer.delete(theirs._core, latest=group._state.latest)
    refusal = "only an admin deletes a value, its author's role is writer"
    assert [why for _, _, why in theirs.refusals()] == [None, refusal]
    assert content(theirs) == {"a": 1}
    await writer.catch_up()
    await python.catch_up()
    assert content(value) == {"a": 1}
    assert not await js("isDeleted", actor="js", id=value.id)


async def test_a_deletion_by_an_account_that_was_admin_then_remains_valid(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group = await _shared(jazz, js, nodes, "admin")
    value = group.create_map({"a": 1})
    second = await nodes("second")
    await group.add_member(AccountId(second.account_id), "admin")
    await python.flush()
    (await second.load_map(value.id)).destroy()
    await second.flush()
    await until(value, lambda value: value.deleted)
    assert await js("isDeleted", actor="js", id=value.id)
    assert [why for _, _, why in value.refusals()] == ["the value was deleted", None]


async def test_groups_and_accounts_are_not_deleted(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _shared(jazz, js, nodes, "admin")
    python._host.writer.delete(group._core, latest=0)
    assert group.my_role == "admin"
    assert not group._core.deleted
    with pytest.raises(JavaScriptError, match="Cannot delete Group or Account"):
        await js("delete", actor="js", id=group.id)


async def test_an_offline_deletion_is_sent_on_the_next_connection(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group = await _shared(jazz, js, nodes, "writer")
    value = group.create_map({"a": 1})
    never_sent = group.create_map({"b": 1})
    never_sent.destroy()
    await python.flush()
    await js("isDeleted", actor="js", id=never_sent.id)
    value.destroy()
    await python.flush()
    assert await js("isDeleted", actor="js", id=value.id)


async def test_jazz_tools_sees_deleted_values_and_deletes_values(
    jazz: JazzServer, tools: JavaScript, nodes: Nodes
) -> None:
    python = await nodes("python")
    made = await tools("create", url=jazz.url, name="tools")
    await tools("login", actor="tools", url=jazz.url, **made)
    group = python.create_group()
    await group.add_member(AccountId(made["accountID"]), "admin")
    mine, theirs = group.create_map({"by": "a"}), group.create_map({"by": "b"})
    await python.flush()
    assert await tools("loadingState", actor="tools", id=theirs.id) == "loaded"
    mine.destroy()
    await python.flush()
    assert await tools("loadingState", actor="tools", id=mine.id) == "deleted"
    await tools("deleteValue", actor="tools", id=theirs.id)
    await until(theirs, lambda value: value.deleted)


async def test_an_unsent_deletion_is_sent_after_a_restart(jazz: JazzServer, js: JavaScript, tmp_path: Path) -> None:
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
        await node.register("forgetful")
        value = node.create_group().create_map({"a": 1})
        await node.flush()
        value.destroy()
    assert _stored_sessions(tmp_path / "store", value.id) == ["d"]
    await js("create", actor="js", url=jazz.url, name="js")
    async with Node(jazz.url, credentials, store=SqliteStore(tmp_path / "store")) as node:
        await node.login()
        with pytest.raises(ValueDeleted):
            await node.load(value.id)
        await node.flush()
        await js("untilDeleted", actor="js", id=value.id)


def _stored_sessions(path: Path, co_id: str) -> list[str]:
    """Return the kinds of sessions (z, d) of which a local store has content."""
    query = "SELECT DISTINCT session FROM log JOIN batch ON batch.log = log.number WHERE value = ?"
    with closing(sqlite3.connect(path)) as connection:
        return [row[0].rpartition("_session_")[2][0] for row in connection.execute(query, (co_id,))]
