"""A node without an account: nobody could verify its groups and memberships, so they are refused with the cure."""

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange_during, registered

from reside.jazz import InvalidState, Invite, ValueNotFound

pytestmark = pytest.mark.anyio

CURE = r"no account yet: await node\.register\(name\) or node\.login\(\) first"


async def test_a_group_is_not_created_before_the_account() -> None:
    node = DetachedNode()
    with pytest.raises(InvalidState, match=CURE):
        node.create_group()
    with pytest.raises(InvalidState, match=CURE):
        _ = node.account
    assert node.take() == []


async def test_an_invite_is_not_accepted_before_the_account_exists() -> None:
    hub = await registered(DetachedNode())
    group = hub.create_group()
    invite: Invite = await group.create_invite("writer")
    node = DetachedNode()
    with pytest.raises(InvalidState, match=CURE):
        await exchange_during(hub, node, node.accept_invite(invite))
    assert list(group.members().values()) == ["admin", "writerInvite"]
    await exchange_during(hub, node, node.register("late"))
    await exchange_during(hub, node, node.accept_invite(invite))
    assert group.role_of(node.account_id) == "writer"


async def test_a_login_without_registration_says_how_to_register() -> None:
    hub, node = await registered(DetachedNode()), DetachedNode()
    with pytest.raises(ValueNotFound, match=r"await node\.register\(name\) first"):
        await exchange_during(hub, node, node.login())
