"""Indexes of the Sentinel: an event about one object reads neither all stacks nor all objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.model.constants import STACK_LABEL
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.objects.index import KeyIndex
from reside.sentinel.store.stacks import StackStore, StoredStack

if TYPE_CHECKING:
    from pathlib import Path


def config_map(name: str, stack: str | None = None) -> dict[str, Any]:
    labels = {} if stack is None else {STACK_LABEL: stack}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def test_a_key_is_found_by_all_names_that_contain_it() -> None:
    index = KeyIndex()
    index.put("one", ["a", "b"])
    index.put("two", ["b"])
    assert (index.names("a"), index.names("b"), index.names("c")) == ({"one"}, {"one", "two"}, frozenset())
    index.put("one", ["c"])
    assert (index.names("a"), index.names("b"), index.names("c")) == (frozenset(), {"two"}, {"one"})
    index.put("two", ())
    assert index.keys("two") == index.names("b") == frozenset()


def test_the_holder_of_an_object_follows_the_stored_stacks(tmp_path: Path) -> None:
    store = StackStore(tmp_path / "stacks")
    store.save(StoredStack("one", "co_zA", (config_map("a"),), leaving=frozenset({"ConfigMap/old"})))
    assert (store.holder("ConfigMap/a"), store.holder("ConfigMap/old")) == ("one", "one")
    store.save(StoredStack("one", "co_zA", (config_map("b"),)))
    assert (store.holder("ConfigMap/a"), store.holder("ConfigMap/b")) == (None, "one")
    assert StackStore(tmp_path / "stacks").holder("ConfigMap/b") == "one"
    store.remove("one")
    assert store.holder("ConfigMap/b") is None


def test_live_objects_are_found_by_the_stack_that_their_label_names() -> None:
    cache = ObjectCache()
    cache.note("ADDED", config_map("a", "one"))
    cache.note("ADDED", config_map("b", "one"))
    cache.note("MODIFIED", config_map("b", "two"))
    assert (cache.of_stack("one"), cache.of_stack("two")) == ({"ConfigMap/a"}, {"ConfigMap/b"})
    cache.note("DELETED", config_map("a", "one"))
    assert cache.of_stack("one") == frozenset()
