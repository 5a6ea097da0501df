"""Values behave as Python's read-only collections, but are equal only to themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest
from support.jazz_controlled_nodes import detached_group

from reside.jazz.typed import ListOf, RecordOf

if TYPE_CHECKING:
    from reside.jazz import Group

pytestmark = pytest.mark.anyio


@pytest.fixture
async def group() -> Group:
    """Return a group of an unconnected node."""
    return detached_group()


async def test_a_map_is_a_mapping(group: Group) -> None:
    value = group.create_map({"a": 1, "b": None, "c": [2]})
    value.delete("c")
    model = {"a": 1, "b": None}
    assert isinstance(value, Mapping)
    assert dict(value) == model
    assert {**value} == model
    assert (list(value), list(value.keys()), list(value.values())) == (["a", "b"], ["a", "b"], [1, None])
    assert list(value.items()) == list(model.items())
    assert (len(value), "a" in value, "c" in value, value.get("c", 3)) == (2, True, False, 3)
    assert (len(value.keys()), ("a", 1) in value.items()) == (2, True)
    for key in value:
        value.delete(key)
    assert not value
    assert (value == model, value == value, len({value, group.create_map()})) == (False, True, 2)  # noqa: PLR0124 - tested


async def test_a_map_can_change_while_it_is_iterated(group: Group) -> None:
    value = group.create_map({"a": 1, "b": 2, "c": 3})
    for key, number in value.items():
        value.delete("c")
        value.set(key * 2, number)
    assert dict(value) == {"a": 1, "b": 2, "aa": 1, "bb": 2, "cc": 3}


async def test_a_list_is_a_sequence(group: Group) -> None:
    value = group.create_list(["a", {"b": 1}, "a"])
    assert isinstance(value, Sequence)
    assert (list(value), value[-1], value[1:]) == (["a", {"b": 1}, "a"], "a", [{"b": 1}, "a"])
    assert (value.index({"b": 1}), value.count("a"), {"b": 1} in value, "c" in value) == (1, 2, True, False)
    assert list(reversed(value)) == ["a", {"b": 1}, "a"]
    assert value != ["a", {"b": 1}, "a"]
    assert len({value, group.create_list()}) == 2
    with pytest.raises(ValueError):  # noqa: PT011 - Sequence gives it no text
        value.index("c")


async def test_a_feed_is_a_sequence_of_its_items(group: Group) -> None:
    feed = group.create_feed()
    for number in range(3):
        feed.push(number)
    assert isinstance(feed, Sequence)
    assert ([entry.value for entry in feed], feed[-1].value) == ([0, 1, 2], 2)
    assert [entry.value for entry in feed[1:]] == [1, 2]
    assert (feed.index(feed[1]), feed[0] in feed) == (1, True)


@pytest.mark.parametrize("is_draft", [True, False])
async def test_typed_records_and_lists_are_collections(group: Group, is_draft: bool) -> None:
    record, items = RecordOf[int]({"a": 1, "b": 2}), ListOf[int]([1, 2, 1])
    if not is_draft:
        record.create(group)
        items.create(group)
    assert isinstance(record, Mapping)
    assert isinstance(items, Sequence)
    assert (dict(record), record.get("c"), record.get("c", 3), list(record.values())) == (
        {"a": 1, "b": 2},
        None,
        3,
        [1, 2],
    )
    assert (list(items), items.index(2), items.count(1), 3 in items) == ([1, 2, 1], 1, 2, False)
    assert record != {"a": 1, "b": 2}
