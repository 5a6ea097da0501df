"""A reader may write the pointer to its branch; other content in the same transaction does not count."""

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered

pytestmark = pytest.mark.anyio


async def test_content_beside_a_branch_pointer_counts_only_while_its_author_was_a_writer() -> None:
    hub = DetachedNode()
    owner, member = await registered(hub, "owner"), await registered(hub, "member")
    group = owner.create_group()
    await exchange_during(hub, owner, group.add_member(member.account_id, "writer"))
    value = group.create_map({"x": "owner's"})
    await exchange(hub, owner)
    await exchange_during(hub, member, member.load_map(value.id))
    now = owner.now_ms() + 1_000
    pointer = {"branch": "draft", "ownerId": member.account_id}
    step = [{"op": "set", "key": "x", "value": "member's"}]
    member.transact(value.id, step, private=False, made_at=now, meta=pointer)
    await exchange(hub, member)
    owner.connect()
    await exchange(hub, owner)
    assert value["x"] == "member's"

    async def becomes(role: str, made_at: int) -> None:
        step = [{"op": "set", "key": member.account_id, "value": role}]
        owner.transact(group.id, step, private=False, made_at=made_at)
        await exchange(hub, owner)

    await becomes("reader", now - 2)
    assert value["x"] == "owner's"
    await becomes("writer", now - 1)
    assert value["x"] == "member's"
