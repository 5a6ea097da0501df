"""Content that JavaScript merges from a branch has the position that its author gave it, and can be edited."""

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, Group, Node

pytestmark = pytest.mark.anyio


async def _both(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> tuple[Node, Group]:
    """Return a node, and a group of it in which the JavaScript actor `js` may write."""
    python = await nodes("python")
    other = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    group = python.create_group()
    await group.add_member(AccountId(other["accountID"]), "writer")
    await python.flush()
    return python, group


async def test_a_list_merged_from_a_branch_has_its_order(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    value = group.create_list(["a", "b", "c"])
    await python.flush()
    body = """
        value.append("in the middle", 0);
        value.append("behind it", 1);
        value.prepend("first");
        value.delete(value.asArray().indexOf("b"));
        value.appendItems(["x", "y"]);
    """
    await js("editInBranch", actor="js", id=value.id, name="one", body=body)
    await js("editInBranch", actor="js", id=value.id, name="two", body='value.append("again", 0);')
    expected = await js("load", actor="js", id=value.id)
    assert {"in the middle", "first", "y", "again"} < set(expected)
    await until(value, expected)

    value.insert(value.as_list().index("behind it"), "python")
    value.remove(value.as_list().index("x"))
    value.move(0, 2)
    await js("until", actor="js", id=value.id, expected=value.as_list())


async def test_a_map_merged_from_a_branch_keeps_later_writes(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    """What the branch wrote before the value's own write, but merged after it, does not win."""
    python, group = await _both(jazz, js, nodes)
    value = group.create_map({"a": 1, "b": 1})
    await python.flush()
    body = 'value.set("a", 2); value.set("c", 2); value.delete("b");'
    await js("editInBranch", actor="js", id=value.id, name="one", body=body)
    await js("until", actor="js", id=value.id, expected={"a": 2, "c": 2})
    await until(value, {"a": 2, "c": 2})
    value.set("a", 3)
    await js("until", actor="js", id=value.id, expected={"a": 3, "c": 2})


async def test_a_text_merged_from_a_branch_is_complete(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group = await _both(jazz, js, nodes)
    value = group.create_text("hello world")
    await python.flush()
    body = 'value.insertAfter(4, ", brave"); value.deleteRange({from: 0, to: 1}); value.insertBefore(0, "H");'
    await js("editInBranch", actor="js", id=value.id, name="one", body=body)
    expected = await js("load", actor="js", id=value.id)
    assert expected == "Hello, brave world"
    await until(value, expected)
    value.apply("Hello, braver world!")
    await js("until", actor="js", id=value.id, expected="Hello, braver world!")
