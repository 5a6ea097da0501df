"""Decoded content that was not read lately is dropped: no change of it is missed, and no change is reported twice."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from support.jazz_controlled_nodes import DetachedNode, detached_group, exchange, exchange_during
from support.jazz_nodes import content

if TYPE_CHECKING:
    from reside.jazz import CoMap, Group
    from reside.jazz.memory.covalue import Core

pytestmark = pytest.mark.anyio


def _core(value: CoMap) -> Core:
    return value._host.store.core(value.id)


def _is_decoded(value: CoMap) -> bool:
    return any(item.changes is not None for item in _core(value).transactions)


def _group() -> Group:
    """Return a group of a node that keeps the decoded content of one value only."""
    group = detached_group()
    group._host.store.decoded.limit = 0
    return group


def _read_another(group: Group) -> None:
    assert group.create_map({"other": 1}).as_dict() == {"other": 1}


async def test_the_content_of_a_quiet_watched_map_is_not_kept_and_its_changes_are_reported() -> None:
    group = _group()
    value = group.create_map({"x": 1})
    seen: list[object] = []
    unsubscribe = value.on_change(lambda changed: seen.append(changed["x"]))
    await asyncio.sleep(0)
    _read_another(group)
    assert not _is_decoded(value)
    value._host.store.changed(_core(value))  # a message about it that changes nothing
    await asyncio.sleep(0)
    assert (seen, _is_decoded(value)) == ([], False)
    value.set("x", 2)
    await asyncio.sleep(0)
    assert seen == [2]
    _read_another(group)
    assert not _is_decoded(value)
    assert value.as_dict() == {"x": 2}
    assert [edit.value for edit in value.history("x")] == [1, 2]
    await asyncio.sleep(0)
    assert seen == [2]
    unsubscribe()


async def test_a_read_of_dropped_content_is_no_change() -> None:
    group = _group()
    value = group.create_map({"x": 1})
    revision = value._refresh()
    _read_another(group)
    assert value["x"] == 1
    _read_another(group)
    assert value._refresh() == revision
    assert not _is_decoded(value)


async def test_content_that_became_invalid_while_it_was_dropped_is_reported(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    group, other = writer.create_group(), DetachedNode()
    await exchange_during(hub, other, other.register("other"))
    await exchange_during(hub, writer, group.add_member(other.account_id, "writer"))
    value = group.create_map({"x": 1})
    await exchange(hub, writer)
    theirs = await exchange_during(hub, other, other.load_map(value.id))
    before = writer.now_ms()
    await asyncio.sleep(0.002)  # so that the next write has a later date
    theirs.set("x", 2)
    await exchange(hub, other)
    writer.cut()
    writer.connect()
    await exchange(hub, writer)
    seen: list[object] = []
    unsubscribe = value.on_change(lambda changed: seen.append(changed["x"]))
    assert value["x"] == 2
    writer._host.store.decoded.limit = 0
    _read_another(writer.create_group())
    assert not _is_decoded(value)
    step = [{"op": "set", "key": other.account_id, "value": "revoked"}]
    writer.transact(group.id, step, private=False, made_at=before)
    await asyncio.sleep(0)
    assert (seen, value["x"]) == ([1], 1)
    unsubscribe()


async def test_a_dropped_map_that_is_deleted_is_empty() -> None:
    group = _group()
    value = group.create_map({"x": 1})
    assert value["x"] == 1
    _read_another(group)
    value.destroy()
    assert (value.deleted, value.as_dict()) == (True, {})


async def test_content_of_a_map_without_an_object_is_dropped_and_decoded_for_the_next_one(
    hub: DetachedNode, writer: DetachedNode
) -> None:
    group = writer.create_group()
    writer._host.store.decoded.limit = 0
    value = group.create_map({"x": 1})
    core = _core(value)
    assert value["x"] == 1
    await exchange(hub, writer)
    writer._host.objects.release()
    del value
    _read_another(group)
    assert [item.changes for item in core.transactions] == [None]
    assert content(await writer.load_map(core.co_id)) == {"x": 1}


async def test_the_content_of_a_tracked_map_and_of_the_source_of_a_branch_is_kept() -> None:
    group = _group()
    tracked, source = group.create_map({"x": 1}), group.create_map({"y": 1})
    tracker, branch = tracked.track(), await source.branch("draft")
    assert tracker.take() == {"x"}
    assert (source["y"], branch["y"]) == (1, 1)
    _read_another(group)
    tracked.set("z", 1)
    _read_another(group)
    assert tracker.take() == {"z"}
    assert branch.as_dict() == {"y": 1}


async def test_the_content_of_a_large_map_is_kept_because_decoding_it_again_takes_long() -> None:
    group = _group()
    value = group.create_map({"x": "y" * 100_000})
    assert len(str(value["x"])) == 100_000
    _read_another(group)
    assert _is_decoded(value)
