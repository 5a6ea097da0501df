"""Objects as text in memory: what is unpacked is equal to what was packed, and nobody changes what is kept."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import pytest

from reside.model.stacks import DesiredStack
from reside.sentinel.objects.packed import PackedList, packed
from reside.sentinel.store.stacks import StackStore, StoredStack

if TYPE_CHECKING:
    from pathlib import Path


def config_map(name: str, **data: Any) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": name}, "data": data}


OBJECTS = (config_map("a", text="\u00fc\u2028", empty=None, items=[1, 2.5, True, {}]), config_map("b"))
ODD = (config_map("a", text="\ud800"), config_map("b", number=2**70))


LARGE = (config_map("a", text="value " * 1000), config_map("b"))


@pytest.mark.parametrize("objects", [OBJECTS, ODD, LARGE, ()])
def test_a_packed_list_is_equal_to_its_objects(objects: tuple[dict[str, Any], ...]) -> None:
    found = PackedList(objects)
    assert (tuple(found), len(found), list(found[:1])) == (objects, len(objects), list(objects[:1]))
    assert found == objects
    assert objects == found
    assert found == PackedList(objects)
    assert found != (*objects, config_map("c"))
    assert packed(found) is found


def test_the_text_of_a_large_object_is_compressed() -> None:
    assert len(PackedList(LARGE).packed[0]) < 200


def test_lists_are_equal_whatever_the_order_of_members() -> None:
    assert PackedList([{"kind": "a", "b": 1}]) == PackedList([{"b": 1, "kind": "a"}])
    assert PackedList([{"kind": "a", "b": 1}]) != PackedList([{"b": 2, "kind": "a"}])
    assert PackedList(()) != "text"


def test_a_caller_does_not_change_what_is_packed() -> None:
    found = PackedList(OBJECTS)
    found[1]["data"]["new"] = "x"
    assert found == OBJECTS


def test_a_store_keeps_its_stacks_packed(tmp_path: Path) -> None:
    """A thousand stacks have a hundred thousand dicts; a full garbage collection would visit each."""
    store, stack = StackStore(tmp_path), StoredStack("demo", "co_zOwner", OBJECTS, "1")
    store.save(stack)
    for kept in (store.stacks["demo"], StackStore(tmp_path).stacks["demo"]):
        assert kept == stack
        assert isinstance(kept.objects, PackedList)
        assert not any(gc.is_tracked(text) for text in kept.objects.packed)
        assert kept.by_key() == {"ConfigMap/a": OBJECTS[0], "ConfigMap/b": OBJECTS[1]}
        assert kept.keys() == {"ConfigMap/a", "ConfigMap/b"}


def test_a_desired_stack_keeps_its_revision_with_packed_objects() -> None:
    stack = DesiredStack("demo", "co_zOwner", OBJECTS)
    revision = stack.revision
    found = stack.holding(PackedList(OBJECTS))
    assert vars(found)["revision"] == revision
    assert found == stack
    assert DesiredStack("demo", "co_zOwner", PackedList(OBJECTS)).revision == revision
