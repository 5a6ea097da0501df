"""The cost of recording removals, and what a policy may contain."""

import asyncio
from unittest.mock import patch

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange_during, registered

from reside.jazz import NodeClosed, WritePolicy, fenced_writes
from reside.jazz.node.notes import UnfencedNotes
from reside.jazz.removals import RemovalRecord, WriteGuard
from reside.jazz.removals import record as removal_record

pytestmark = pytest.mark.anyio


async def test_a_removal_is_computed_once_for_all_values_of_a_group() -> None:
    node = DetachedNode()
    guard = WriteGuard(node._host.store, WritePolicy(refuse_after_removal=True, remember=True), node.now_ms)
    node._host.store.guard = guard
    node._host.writer.create(node._runtime.account_header)
    group = node.create_group()
    values = [group.create_map({"x": number}) for number in range(50)]
    notes = node.create_group().create_map({})
    memory = RemovalRecord(node._host.store, notes)
    guard.record_in(memory)
    for number in range(20):
        group._writer.set(f"co_zMember{number}", "writer")
    for value in values:
        memory.note(node._host.store.core(value.id))
    group._writer.set("co_zMember7", "revoked")
    with patch.object(removal_record, "_lost_at", side_effect=removal_record._lost_at) as asked:
        for value in values:
            memory.note(node._host.store.core(value.id))
    assert asked.call_count == 22
    removed_at = group._state.latest
    noted = notes.as_dict()
    assert {value.id for value in values} <= noted.keys()
    assert noted[values[0].id] == {"co_zMember7": {"at": removed_at, "seen": {}}}


async def test_a_role_given_and_taken_away_in_one_millisecond_is_recorded() -> None:
    """Its holder may have used it in that millisecond, so a later process has to refuse what is dated in it."""
    now = [1_000_000]
    node = DetachedNode(clock=lambda: now[0])
    guard = WriteGuard(node._host.store, WritePolicy(refuse_after_removal=True, remember=True), node.now_ms)
    node._host.store.guard = guard
    node._host.writer.create(node._runtime.account_header)
    group = node.create_group()
    notes = node.create_group().create_map({})
    record = RemovalRecord(node._host.store, notes)
    guard.record_in(record)
    now[0] += 10
    group._writer.set("co_zMember", "manager")
    group._writer.set("co_zMember", "revoked")
    record.note(node._host.store.core(group.id))
    assert notes.as_dict() == {group.id: {"co_zMember": {"at": now[0], "seen": {}}}}


async def test_a_member_of_a_parent_has_lost_nothing_in_its_children() -> None:
    """Before a group extends its parent, the roles in the parent are none in the group."""
    node = DetachedNode()
    guard = WriteGuard(node._host.store, WritePolicy(refuse_after_removal=True, remember=True), node.now_ms)
    node._host.store.guard = guard
    node._host.writer.create(node._runtime.account_header)
    parent = node.create_group()
    parent._writer.set("co_zMember", "admin")
    child = parent.create_child()
    notes = node.create_group().create_map({})
    RemovalRecord(node._host.store, notes).note(node._host.store.core(child.id))
    assert notes.as_dict() == {}


async def test_a_removal_is_recorded_in_a_task_that_has_lost_its_lock() -> None:
    """A fence concerns what its task writes, and not what the node notes while the task runs."""
    node = DetachedNode()
    guard = WriteGuard(node._host.store, WritePolicy(refuse_after_removal=True, remember=True), node.now_ms)
    node._host.store.guard = guard
    node._host.writer.create(node._runtime.account_header)
    group = node.create_group()
    notes = node.create_group().create_map({})
    record = RemovalRecord(node._host.store, UnfencedNotes(notes))
    group._writer.set("co_zMember", "manager")
    group._writer.set("co_zMember", "revoked")

    def check() -> None:
        raise RuntimeError("another holder has the lock")

    with fenced_writes(check):
        record.note(node._host.store.core(group.id))
        with pytest.raises(RuntimeError, match="another holder"):
            group._writer.set("co_zOther", "reader")
    removed = group._state.entry("co_zMember")
    assert removed is not None
    assert notes.as_dict() == {group.id: {"co_zMember": {"at": removed.made_at, "seen": {}}}}


async def test_a_node_that_has_ended_records_nothing_more() -> None:
    """Otherwise the callback of the event loop would fail, because the node can't write."""
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    node = DetachedNode(policy=WritePolicy(refuse_after_removal=True, remember=True))
    guard = node._runtime.guard
    assert guard is not None
    node._host.writer.create(node._runtime.account_header)
    group = node.create_group()
    guard.record_in(RemovalRecord(node._host.store, UnfencedNotes(node.create_group().create_map({}))))
    group._writer.set("co_zMember", "manager")
    group._writer.set("co_zMember", "revoked")
    node._runtime._finish(NodeClosed("a test has ended it"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert failures == []


async def test_an_evicted_account_leaves_nothing_in_the_record(hub: DetachedNode) -> None:
    """Otherwise each account that strangers make a node load would stay in memory, with its validated state."""
    policy = WritePolicy(refuse_after_removal=True, remember=True)
    node = DetachedNode(policy=policy)
    await exchange_during(hub, node, node.register("careful"))
    guard = node._runtime.guard
    assert guard is not None
    record = guard._removals
    assert isinstance(record, RemovalRecord)
    before = set(record._losses), set(record._noted_at)
    strangers = {(await registered(hub, f"stranger {number}")).account_id for number in range(3)}
    for stranger in strangers:
        await exchange_during(hub, node, node.load_account(stranger))
    record.flush()
    assert strangers <= set(record._noted_at)
    node._host.objects.release()
    node._runtime._evict()
    assert not strangers & node._host.store.cores.keys()
    assert (set(record._losses), set(record._noted_at)) == before


def test_remembering_removals_requires_refusing_writes() -> None:
    with pytest.raises(ValueError, match="refuse_after_removal"):
        WritePolicy(remember=True)
