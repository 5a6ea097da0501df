"""A cached permit of a writer ends with any change of the group: no old key and no lost role is used."""

import gc

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered

from reside.jazz import CoMap, Group, NotPermitted

pytestmark = pytest.mark.anyio


def _keys_used(node: DetachedNode, co_id: str) -> list[str | None]:
    return [item.key_used for item in node._host.store.core(co_id).transactions]


async def _written_by(hub: DetachedNode, writer: DetachedNode, other: DetachedNode) -> tuple[Group, CoMap]:
    """Return a group of `writer`, and a map in it that `other` has loaded and just written to, as `other` sees it."""
    group = writer.create_group()
    await exchange_during(hub, writer, group.add_member(other.account_id, "writer"))
    value = group.create_map({"x": 1})
    await exchange(hub, writer)
    theirs = await exchange_during(hub, other, other.load_map(value.id))
    theirs.set("x", 2)
    await exchange(hub, other)
    return group, theirs


async def test_after_a_removal_a_write_is_encrypted_with_the_new_key(hub: DetachedNode, writer: DetachedNode) -> None:
    other = await registered(hub, "other")
    group = writer.create_group()
    await exchange_during(hub, writer, group.add_member(other.account_id, "reader"))
    value = group.create_map({"x": 1})
    value.set("x", 2)
    before = group._state.get("readKey")
    await exchange_during(hub, writer, group.remove_member(other.account_id))
    value.set("x", 3)
    after = group._state.get("readKey")
    assert before != after
    assert _keys_used(writer, value.id) == [before, before, after]


async def test_an_account_that_has_lost_its_role_can_not_write(hub: DetachedNode, writer: DetachedNode) -> None:
    other = await registered(hub, "other")
    group, theirs = await _written_by(hub, writer, other)
    await exchange_during(hub, writer, group.remove_member(other.account_id))
    await exchange(hub, writer)
    other.connect()
    await exchange(hub, other)
    with pytest.raises(NotPermitted):
        theirs.set("x", 3)


async def test_a_group_that_was_evicted_and_changed_is_read_again(hub: DetachedNode, writer: DetachedNode) -> None:
    """It is loaded with the number of revisions that it had, so the number alone is not enough."""
    other = await registered(hub, "other")
    group, theirs = await _written_by(hub, writer, other)
    before, revision, value_id = group._state.get("readKey"), other._host.store.core(group.id).revision, theirs.id
    del theirs
    other._host.objects.release()
    gc.collect()
    other._runtime._evict()
    assert group.id not in other._host.store.cores
    await exchange_during(hub, writer, group.remove_member(writer.account_id))
    await exchange(hub, writer)
    theirs = await exchange_during(hub, other, other.load_map(value_id))
    assert other._host.store.core(group.id).revision == revision
    theirs.set("x", 3)
    after = theirs.group._state.get("readKey")
    assert before != after
    assert _keys_used(other, value_id) == [before, before, after]
