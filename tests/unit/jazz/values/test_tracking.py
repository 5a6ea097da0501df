"""Trackers of maps: they tell the keys that have changed, so that a reader of a large map reads only these."""

from __future__ import annotations

import pytest
from support.jazz_controlled_nodes import detached_group

pytestmark = pytest.mark.anyio


async def test_a_tracker_tells_all_keys_first_and_then_those_that_changed() -> None:
    value = detached_group().create_map({"a": 1, "b": 2})
    tracker = value.track()
    assert tracker.take() == {"a", "b"}
    assert tracker.take() == set()
    value.set("a", 3)
    value.update({"c": 4}, unset=["b"])
    assert tracker.take() == {"a", "b", "c"}
    value.delete("c")
    assert tracker.take() == {"c"}
    assert tracker.take() == set()


async def test_trackers_of_one_map_do_not_affect_each_other() -> None:
    value = detached_group().create_map({"a": 1})
    first, second = value.track(), value.track()
    first.take()
    value.set("b", 2)
    assert first.take() == {"b"}
    assert second.take() == {"a", "b"}


async def test_a_tracker_tells_the_keys_of_content_that_no_longer_counts() -> None:
    value = detached_group().create_map({"a": 1, "b": 2})
    tracker = value.track()
    tracker.take()
    value.destroy()
    assert tracker.take() == {"a", "b"}
    assert tracker.take() == set()


async def test_a_tracker_tells_all_keys_when_a_race_of_first_writers_is_decided() -> None:
    """Of two first contents of a unique value, the earlier one counts, even if it arrives later."""
    value = detached_group().create_map({"a": 1})
    tracker = value.track()
    tracker.take()
    for number in range(2):
        value._write([{"op": "set", "key": f"of {number}", "value": number}], {"fww": "init"})
    assert tracker.take() == {"a", "of 0"}
    value.set("c", 1)
    assert tracker.take() == {"c"}


async def test_a_tracker_of_a_list_tells_the_texts_that_were_inserted() -> None:
    value = detached_group().create_list(["a", 1])
    tracker = value.track()
    assert tracker.take() == {"a"}
    value.extend(["b", {"text": "c"}])
    value.insert(0, "d")
    value.remove(1)
    assert tracker.take() == {"b", "d"}
    assert tracker.take() == set()


async def test_the_log_of_a_value_has_a_length() -> None:
    value = detached_group().create_map({"a": 1})
    value.set("a", 2)
    assert value.transaction_count == 2
