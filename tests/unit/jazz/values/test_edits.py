"""Edits of maps, lists and texts: each operation equals the one on a Python dict, list or text."""

import asyncio
import random
from itertools import count
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.jazz_controlled_nodes import detached_group
from unit.jazz.logs import Log

from reside.jazz import CoList, CoPlainText, InvalidArgument
from reside.jazz.values.cofeed import FeedView
from reside.jazz.values.comap import MapView
from reside.jazz.values.listview import ListView
from reside.jazz.values.text import graphemes

pytestmark = pytest.mark.anyio

_Edit: TypeAlias = tuple[int, int, int]

_LETTERS = [
    "a",
    "ü",
    "e\u0301",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\r\n",
    "\U0001f1e9\U0001f1ea",
    "한",
    " ",
]
_places = st.integers(-4, 14)
_edits = st.lists(st.tuples(st.integers(0, 7), _places, _places), max_size=12)


def _edit_list(value: CoList, model: list[Any], edit: _Edit, added: Any) -> None:
    kind, one, two = edit
    if kind == 0:
        value.append(added)
        model.append(added)
    elif kind == 1:
        value.insert(one, added)
        model.insert(one, added)
    elif kind == 2:
        value.splice(one, two, [added, [added]])
        first, last, _ = slice(one, two).indices(len(model))
        model[first : max(first, last)] = [added, [added]]
    elif kind == 3:
        wanted = [*model[::2], added, *model[1::3]]
        value.apply(wanted)
        model[:] = wanted
    elif kind == 7:
        value.clear()
        model.clear()
    elif not -len(model) <= one < len(model):
        for act in (lambda: value.remove(one), lambda: value.replace(one, added), lambda: value.move(one, 0)):
            with pytest.raises(IndexError):
                act()
    elif kind == 4:
        value.remove(one)
        del model[one]
    elif kind == 5:
        value.replace(one, added)
        model[one] = added
    else:
        value.move(one, two)
        model.insert(two, model.pop(one))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 3), max_size=8), _edits)
def test_a_list_is_edited_as_a_list(start: list[int], edits: list[_Edit]) -> None:
    async def run() -> None:
        value, model = detached_group().create_list(start), list[Any](start)
        for number, edit in enumerate(edits):
            _edit_list(value, model, edit, f"new {number}")
            assert value.as_list() == model
            assert [n for n in range(number + 1) if f"new {n}" in value] == [
                n for n in range(number + 1) if f"new {n}" in model
            ]
        assert list(value) == model
        assert value[1:3] == model[1:3]
        assert len(value) == len(model)
        rebuilt = CoList(value._host, value._core)
        value._core.stale = True
        assert rebuilt.as_list() == model

    asyncio.run(run())


def _edit_text(value: CoPlainText, model: list[str], edit: _Edit, added: list[str]) -> None:
    kind, one, two = edit
    text = "".join(added)
    first, last, _ = slice(one, two).indices(len(model))
    if kind in (0, 1):
        value.append(text)
        model.extend(added)
    elif kind in (2, 3):
        (value.insert if kind == 2 else value.insert_before)(one, text)
        model[first:first] = added
    elif kind == 4:
        value.insert_after(one, text)
        model[first + 1 : first + 1] = added
    elif kind == 5:
        value.delete_range(one, two)
        model[first : max(first, last)] = []
    else:
        wanted = [*model[:first], *added, *model[first + 2 :]]
        value.apply("".join(wanted))
        model[:] = wanted


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(_LETTERS), max_size=10), _edits)
def test_a_text_is_edited_as_a_list_of_graphemes(start: list[str], edits: list[_Edit]) -> None:
    async def run() -> None:
        value, model = detached_group().create_text("".join(start)), graphemes("".join(start))
        for edit in edits:
            _edit_text(value, model, edit, ["x", _LETTERS[abs(edit[2]) % 8], "y"])
            assert str(value) == "".join(model)
            # Neighbours that were inserted apart may be one grapheme to a reader, and stay two items.
            assert len(value) == len(list(value)) == len(value.edits())
            model[:] = value.graphemes()

    asyncio.run(run())


async def test_a_long_text_is_changed_in_parts() -> None:
    choose = random.Random(3)  # noqa: S311 - a test's program
    first, second = ("".join(choose.choices("abcde \n", k=3_000)) for _ in range(2))
    value = detached_group().create_text(first)
    assert len(value.refusals()) == 6
    value.apply(second)
    assert str(value) == second
    value.apply(second[:100] + "Z" * 2_000 + second[100:])
    assert str(value) == second[:100] + "Z" * 2_000 + second[100:]


async def test_invalid_items_in_a_text_are_not_shown() -> None:
    value = detached_group().create_text("ab")
    value._write([{"op": "app", "value": {"not": "text"}, "after": "start"}])
    assert str(value) == "ab"
    assert len(value) == 3


@pytest.mark.parametrize("text", ["", "abc", "a\r\nb", "\ud83d\ude00x", "\ud800", "e\u0301"])
def test_joined_graphemes_are_the_text(text: str) -> None:
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    assert "".join(graphemes(text)) == whole


async def test_the_keys_of_a_map_are_texts() -> None:
    group = detached_group()
    wrong: Any = {1: "a"}
    for act in (lambda: group.create_map(wrong), lambda: group.create_map().set(*next(iter(wrong.items())))):
        with pytest.raises(InvalidArgument, match="the keys of a map must be texts, found 1"):
            act()


async def test_edits_have_their_author_and_time() -> None:
    value = detached_group().create_list(["a"])
    value.append("b")
    first, second = value.edits()
    assert (first.value, second.value) == ("a", "b")
    assert first.by == second.by == value._host.account_id
    assert first.at <= second.at


async def test_a_value_that_is_not_json_is_refused_without_a_change() -> None:
    value = detached_group().create_list(["a"])
    for act in (lambda: value.append(object()), lambda: value.apply([object()]), lambda: value.replace(0, {1, 2})):
        with pytest.raises(InvalidArgument, match="not a JSON value"):
            act()
    assert value.as_list() == ["a"]


async def test_a_feed_is_in_the_order_of_its_authors_clocks_whatever_arrived_first() -> None:
    log = Log()
    later, earlier = log.add("co_zA", 20, ["second"]), log.add("co_zB", 10, ["first", "first too"])
    view = FeedView()
    view.extend([later])
    view.extend([earlier])
    assert [entry.value for entry in view.items] == ["first", "first too", "second"]
    feed = detached_group().create_feed()
    feed.push({"a": 1})
    feed.push("b")
    assert len(feed) == 2
    assert [entry.value for entry in feed] == [{"a": 1}, "b"]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_of_two_writes_of_one_millisecond_the_greater_session_wins_whatever_arrived_first(
    order: tuple[int, int],
) -> None:
    log = Log()
    changes = [{"op": "set", "key": "k", "value": "b"}, {"op": "app", "value": "b", "after": "start"}]
    log.add("co_zB", 10, changes)
    log.add("co_zA", 10, [change | {"value": "a"} for change in changes])
    arriving = [log.transactions[number] for number in order]
    a_map, a_list, feed = MapView({}), ListView(lambda _: True), FeedView()
    for item in arriving:
        for view in (a_map, a_list, feed):
            view.extend([item])
    assert a_map.entries["k"][-1][2] == "b"
    assert [item.value for item in a_list.items()] == ["a", "b"]
    assert [entry.by for entry in feed.items] == ["co_zA"] * 2 + ["co_zB"] * 2


async def test_a_list_reports_deletions_that_do_not_count() -> None:
    times = count(1)
    items = detached_group(lambda: next(times)).create_list(["a"], restrict_deletion=True)
    items.remove(0)
    assert [why for _, _, why in items.refusals()] == [None, None]
    account = items._host.account_id
    items.group._writer.set(account, "writer")
    deletion = {"op": "del", "insertion": {"sessionID": "x", "txIndex": 0, "changeIdx": 0}}
    items._host.write_private(items._core, [deletion], latest=items.group._state.latest)
    why = "it deletes items, which only admins and managers may do here"
    assert [reason for _, _, reason in items.refusals()] == [None, None, why]


async def test_a_transaction_that_lost_the_race_of_first_writers_says_so() -> None:
    value = detached_group().create_map({})
    for number in range(2):
        value._write([{"op": "set", "key": "a", "value": number}], {"fww": "init"})
    assert value.as_dict() == {"a": 0}
    why = "another transaction was the first writer of what it initialises (meta `fww`)"
    assert [reason for _, _, reason in value.refusals()][-2:] == [None, why]


async def test_a_list_of_deeply_nested_items_is_edited() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    items = detached_group().create_list([deep, 1])
    items.apply([2, deep])
    assert len(items) == 2
    items.replace(0, deep)
    assert [type(item) for item in items] == [list, list]
    for _ in range(200):
        deep = [deep]
    with pytest.raises(InvalidArgument, match="more than 1024 levels"):
        items.append(deep)


async def test_a_late_edit_of_a_map_is_sorted_into_the_history() -> None:
    log = Log()
    view = MapView({})
    view.extend([log.set("co_zA", 20, "k", "new"), log.set("co_zB", 10, "k", "old")])
    view.extend([log.add("co_zB", 15, [{"op": "set", "key": "k", "value": "between"}, {"op": "move"}, None])])
    assert [value for _, _, value in view.entries["k"]] == ["old", "between", "new"]
