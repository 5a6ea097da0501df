"""JSON where the two languages differ: both sides see the same value."""

import json
import math
from typing import Any

import pytest
from interop.javascript import JavaScript
from support.jazz_nodes import Nodes, until
from support.jazz_server import JazzServer

from reside.jazz import AccountId, Group, Node, NotPermitted

pytestmark = pytest.mark.anyio

NESTED: Any = {"a": [1, {"b": None}], "": ""}

WRITTEN_IN_PYTHON: dict[str, tuple[Any, str]] = {
    "integer as float": (1.0, "1"),
    "float": (0.1 + 0.2, "0.30000000000000004"),
    "minus zero": (-0.0, "0"),
    "minus zero within": ([-0.0], "[0]"),
    "not a number": (math.nan, "null"),
    "infinity": ([math.inf, -math.inf], "[null, null]"),
    "tiny": (5e-324, "5e-324"),
    "small": (1e-7, "1e-7"),
    "huge": (1.7976931348623157e308, "1.7976931348623157e308"),
    "2^53": (2**53, "2 ** 53"),
    "2^53 + 1": (2**53 + 1, "2 ** 53"),
    "-2^53 - 1": (-(2**53) - 1, "-(2 ** 53)"),
    "2^60 + 1": (2**60 + 1, "2 ** 60"),
    "10^21": (10**21, "1e21"),
    "beyond": (10**400, "null"),
    "true": (True, "true"),
    "one": (1, "1"),
    "tuple": ((1, 2), "[1, 2]"),
    "lone surrogate": ("a\ud800b", '"a\\ud800b"'),
    "low surrogate": ("\udc00", '"\\udc00"'),
    "halves of a pair": ("\ud83d\ude00", '"\U0001f600"'),
    "lone surrogate in a key": ({"\ud800": 1}, '({"\\ud800": 1})'),
    "controls": ("\0\x1f\x7f\u2028\u2029\ufeff", '"\\0\\x1f\\x7f\\u2028\\u2029\\ufeff"'),
    "digits in a text": ("9007199254740993", '"9007199254740993"'),
    "nested": (NESTED, '({"a": [1, {"b": null}], "": ""})'),
    "integer keys": ({"10": 1, "9": 2}, '({"9": 2, "10": 1})'),
}

WRITTEN_IN_JAVASCRIPT: dict[str, tuple[str, Any]] = {
    "minus zero": ("-0", 0),
    "not a number": ("NaN", None),
    "infinity": ("[Infinity, -Infinity]", [None, None]),
    "undefined within": ("({a: undefined, b: [undefined, 1]})", {"b": [None, 1]}),
    "float": ("0.1 + 0.2", 0.1 + 0.2),
    "whole float": ("1e20", 10**20),
    "large": ("1e21", 1e21),
    "largest": ("Number.MAX_VALUE", 1.7976931348623157e308),
    "tiny": ("Number.MIN_VALUE", 5e-324),
    "small": ("1e-7", 1e-7),
    "rounded": ("2 ** 53 + 1", 2**53),
    "long integer": ("12345678901234567890", int(12345678901234567890.0)),
    "lone surrogate": ('"a\\ud800b"', "a\ud800b"),
    "pair": ('"\\ud83d\\ude00"', "\U0001f600"),
    "lone surrogate in a key": ('({"\\udfff": 1})', {"\udfff": 1}),
    "separators": ('"\\u2028\\u2029\\0"', "\u2028\u2029\0"),
    "date": ("new Date(0)", "1970-01-01T00:00:00.000Z"),
}


async def _both(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> tuple[Node, Group, str]:
    """Return a node, a group of it in which the JavaScript actor `js` may write, and that actor's account."""
    python = await nodes("python")
    other = await js("create", actor="js", url=jazz.url, name="js")
    await js("flush", actor="js")
    group = python.create_group()
    await group.add_member(AccountId(other["accountID"]), "writer")
    await python.flush()
    return python, group, other["accountID"]


def _exactly(value: Any) -> str:
    """Distinguish 1 from True and 0 from -0, but not 1 from 1.0, as JavaScript."""
    return json.dumps(value, sort_keys=True)


async def test_javascript_reads_each_value_like_its_own(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group, _ = await _both(jazz, js, nodes)
    value = group.create_map({key: written for key, (written, _) in WRITTEN_IN_PYTHON.items()})
    await python.flush()
    sources = {key: source for key, (_, source) in WRITTEN_IN_PYTHON.items()}
    assert await js("areExpressions", actor="js", id=value.id, sources=sources) == []


async def test_a_node_reads_its_own_writes_as_other_nodes_do(nodes: Nodes) -> None:
    one, two = await nodes("one"), await nodes("two")
    group = one.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({key: written for key, (written, _) in WRITTEN_IN_PYTHON.items()})
    await one.flush()
    theirs = await two.load_map(value.id)
    for key in WRITTEN_IN_PYTHON:
        assert _exactly(value[key]) == _exactly(theirs[key]), key


async def test_python_reads_exactly_what_javascript_wrote(jazz: JazzServer, js: JavaScript, nodes: Nodes) -> None:
    python, group, _ = await _both(jazz, js, nodes)
    value = group.create_map({})
    await python.flush()
    sources = {key: source for key, (source, _) in WRITTEN_IN_JAVASCRIPT.items()}
    await js("setExpressions", actor="js", id=value.id, sources=sources)
    await until(value, lambda value: len(value) == len(sources))
    for key, (_, expected) in WRITTEN_IN_JAVASCRIPT.items():
        assert _exactly(value[key]) == _exactly(expected), key


async def test_an_undefined_value_is_an_absent_key_and_null_in_a_list(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group, account = await _both(jazz, js, nodes)
    a_map, a_list = group.create_map({"x": 1, "y": 2}), group.create_list([])
    await python.flush()
    await js("setExpressions", actor="js", id=a_map.id, sources={"x": "undefined", "z": "undefined"})
    await js("pushExpressions", actor="js", id=a_list.id, sources=["undefined", "null", "1"])
    await until(a_map, {"y": 2})
    await until(a_list, [None, None, 1])
    assert "x" not in a_map
    assert a_map.get("x", "none") == "none"
    edit = a_map.edit("x")
    assert edit is not None
    assert (edit.by, edit.value, edit.deleted) == (account, None, True)


async def test_where_deletion_is_restricted_a_writers_deletions_never_count(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group, _ = await _both(jazz, js, nodes)
    value = group.create_list(["a", "b"], restrict_deletion=True)
    await python.flush()
    await js("editList", actor="js", id=value.id, kind="append", at=0, values=["c"])
    await js("editList", actor="js", id=value.id, kind="delete", at=0, values=[])
    await js("editList", actor="js", id=value.id, kind="replace", at=0, values=["lost"])
    await js("flush", actor="js")
    await python.catch_up()
    assert value.as_list() == await js("load", actor="js", id=value.id) == ["a", "b", "c"]
    value.remove(1)
    await js("until", actor="js", id=value.id, expected=["a", "c"])

    theirs = await js("group", actor="js")
    await js("addMember", actor="js", group=theirs, account=python.account_id, role="writer")
    made = await js("restrictedList", actor="js", group=theirs, init=["x", "y"])
    await js("flush", actor="js")
    mine = await python.load_list(made)
    for act in (
        lambda: mine.remove(0),
        lambda: mine.replace(0, "z"),
        lambda: mine.move(0, 1),
        lambda: mine.splice(0, 1),
        lambda: mine.apply(["y"]),
        mine.clear,
    ):
        with pytest.raises(NotPermitted, match=r"delete from co_z\w+: role in group co_z\w+ is writer, needs admin or"):
            act()
    mine.append("z")
    await js("until", actor="js", id=made, expected=["x", "y", "z"])


async def test_a_promotion_lets_deletions_count_from_its_time_on(
    jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    python, group, account = await _both(jazz, js, nodes)
    value = group.create_list(["a", "b", "c"], restrict_deletion=True)
    await python.flush()
    await js("editList", actor="js", id=value.id, kind="delete", at=0, values=[])
    await js("flush", actor="js")
    await group.add_member(AccountId(account), "manager")
    await python.flush()
    await js("untilRole", actor="js", group=group.id, account=account, role="manager")
    await js("editList", actor="js", id=value.id, kind="delete", at=0.5, values=[])
    await js("flush", actor="js")
    await until(value, ["a", "c"])
