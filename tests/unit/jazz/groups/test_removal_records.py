"""The cost of recording removals, and what a policy may contain."""

from unittest.mock import patch

import pytest
from support.jazz_controlled_nodes import DetachedNode

from reside.jazz import WritePolicy
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


def test_remembering_removals_requires_refusing_writes() -> None:
    with pytest.raises(ValueError, match="refuse_after_removal"):
        WritePolicy(remember=True)
