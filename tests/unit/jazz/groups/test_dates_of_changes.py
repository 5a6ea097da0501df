"""What one account writes at once has one date, however much it is: so a removal takes effect now."""

import pytest
from support.jazz_controlled_nodes import DetachedNode

from reside.jazz import AgentId
from reside.jazz.wire.crypto import Agent, new_agent_secret

pytestmark = pytest.mark.anyio
NOW = 1_700_000_000_000


@pytest.fixture
async def node() -> DetachedNode:
    """Return a node whose clock stands still."""
    node = DetachedNode(clock=lambda: NOW)
    node._host.writer.create(node._runtime.account_header)
    return node


def _agent() -> AgentId:
    return AgentId(Agent.from_secret(new_agent_secret()).agent_id)


async def test_a_removal_from_a_large_group_is_dated_now(node: DetachedNode) -> None:
    """It reveals a new read key to each of the others first."""
    group = node.create_group()
    members = [_agent() for _ in range(30)]
    for member in members:
        await group.add_member(member, "writer")
    await group.remove_member(members[0])
    log = node._host.store.core(group.id).transactions
    assert len(log) > 90
    assert {item.made_at for item in log} == {NOW, NOW + 1}, "after the maker's own role"
    assert [group.role_of(member, NOW + 1) for member in members] == [None] + 29 * ["writer"]


async def test_the_last_of_many_writes_of_one_millisecond_wins(node: DetachedNode) -> None:
    group = node.create_group()
    value, items = group.create_map({"x": 0}), group.create_list(["first"])
    for number in range(20):
        value.set("x", number)
        items.insert(0, number)
    assert value["x"] == 19
    assert items.as_list() == [*range(19, -1, -1), "first"]
    assert [edit.at for edit in value.history("x")] == 21 * [NOW]
