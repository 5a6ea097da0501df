"""Members without a usable key do not prevent others from changing the group's key."""

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during, registered

from reside.jazz import AccountId, InvalidContent
from reside.jazz.wire.encoding import b58encode
from reside.jazz.wire.header import account_header

pytestmark = pytest.mark.anyio

AGENTS = {
    "a point of low order": f"sealer_z{b58encode(bytes(32))}/signer_z1",
    "too short a key": "sealer_z1/signer_z1",
    "no key": "nonsense",
}
NOBODY = ["co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp", "co_no id", "sealer_zjunk/signer_zjunk"]


def _publish(hub: DetachedNode, agent_id: str) -> AccountId:
    """Return an account of an agent that no library would create; anyone can compute its id."""
    header = account_header(agent_id)
    hub.give({"action": "content", "id": header.co_id, "header": dict(header.raw), "priority": 0, "new": {}})
    hub.take()
    return AccountId(header.co_id)


@pytest.mark.parametrize("member", [*AGENTS, *NOBODY])
@pytest.mark.parametrize("role", ["writer", "writeOnly"])
async def test_a_member_that_cannot_have_a_key_does_not_prevent_a_removal(member: str, role: str) -> None:
    hub = DetachedNode()
    owner, good = await registered(hub, "owner"), await registered(hub, "good")
    member = _publish(hub, AGENTS[member]) if member in AGENTS else member
    group = owner.create_group()
    await exchange_during(hub, owner, group.add_member(good.account_id, "writer"))
    value = group.create_map({"x": 1})
    key = group._state.get("readKey")
    owner.transact(group.id, [{"op": "set", "key": member, "value": role}], private=False, made_at=owner.now_ms() + 50)
    await exchange_during(hub, owner, group.remove_member(good.account_id))
    value.set("x", 2)
    await exchange(hub, owner)
    assert group.members() == {owner.account_id: "admin", member: role}
    assert group._state.get("readKey") != key
    assert value["x"] == 2


@pytest.mark.parametrize("agent_id", AGENTS.values())
async def test_an_account_without_a_usable_key_is_not_added(agent_id: str) -> None:
    hub = DetachedNode()
    owner = await registered(hub, "owner")
    member = _publish(hub, agent_id)
    group = owner.create_group()
    with pytest.raises(InvalidContent, match="sealer"):
        await exchange_during(hub, owner, group.add_member(member, "reader"))


async def test_a_parent_with_an_invalid_sealer_excludes_only_its_own_members() -> None:
    hub = DetachedNode()
    owner, other = await registered(hub, "owner"), await registered(hub, "other")
    parent = other.create_group()
    await exchange(hub, other)
    group = owner.create_group()
    await exchange_during(hub, owner, group.extend(await exchange_during(hub, owner, owner.load_group(parent.id))))
    junk = [{"op": "set", "key": "groupSealer", "value": f"key_z1@sealer_z{b58encode(bytes(32))}"}]
    other.transact(parent.id, junk, private=False, made_at=other.now_ms() + 50)
    await exchange(hub, other)
    await exchange(hub, owner)
    key = group._state.get("readKey")
    third = await registered(hub, "third")
    await exchange_during(hub, owner, group.add_member(third.account_id, "reader"))
    await exchange_during(hub, owner, group.remove_member(third.account_id))
    assert group._state.get("readKey") != key
