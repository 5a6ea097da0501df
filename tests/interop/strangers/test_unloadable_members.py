"""Members that can't be loaded: they can be removed, and they delay no removal, rotation or role of others.

Whoever knows an invite can make any id a member. Members that the server does not know are in
test_unknown_dependencies.py: it holds such changes back.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from interop.strangers.stranger import Stranger, set_key, stranger, trusting
from support.jazz_controlled_nodes import SwitchedNode
from support.jazz_nodes import content, until

from reside.jazz import Credentials, WritePolicy, now_ms
from reside.jazz.groups.invites import agent_secret_from_seed
from reside.jazz.wire.crypto import Agent
from reside.jazz.wire.encoding import b58decode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

    from reside.jazz import Node
    from reside.jazz.groups.invites import InviteRole

pytestmark = pytest.mark.anyio

CAREFUL = WritePolicy(refuse_after_removal=True, max_ahead_ms=60_000, remember=True)
WITHIN_S = 25.0
"""Less than the 30 s after which a load gives up: nothing waits for a member that can not be loaded."""


async def _account_without_content(who: Stranger, _other: str) -> str:
    return await who.publish_account()


async def _value_of_another_kind(_who: Stranger, other: str) -> str:
    return other


async def _agent_without_sealer(who: Stranger, _other: str) -> str:
    return f"sealer_/{who.agent.signer_id}"


async def _unusable_agent(_who: Stranger, _other: str) -> str:
    return "sealer_z0O/signer_z0O"


UNLOADABLE: dict[str, Callable[[Stranger, str], Awaitable[str]]] = {
    "an account without content": _account_without_content,
    "a value that is no account": _value_of_another_kind,
    "an agent without a sealer": _agent_without_sealer,
    "an agent with unusable keys": _unusable_agent,
}


@pytest.fixture(params=[None, CAREFUL], ids=["careless", "careful"])
async def owner(request: pytest.FixtureRequest, nodes: Nodes) -> Node:
    """Return an admin's node, with and without a policy."""
    return await nodes("owner", policy=request.param)


@pytest.fixture
async def member(jazz: JazzServer) -> AsyncIterator[SwitchedNode]:
    """Yield a member that ignores its own removal."""
    node = SwitchedNode(jazz.url, Credentials.generate(), clock=now_ms)
    await node.online()
    await node.register("member")
    yield node
    await node.leave()


@pytest.mark.parametrize("role", ["writer", "reader", "writeOnly"])
async def test_the_holder_of_an_invite_adds_members_that_cannot_be_loaded(
    role: InviteRole, *, jazz: JazzServer, owner: Node, member: SwitchedNode, nodes: Nodes, js: JavaScript
) -> None:
    """A removal, a new member and the removal of each of them succeed, and have effect for both languages."""
    group = owner.create_group()
    await group.add_member(member.account_id, "writer")
    value = group.create_map({"x": 1})
    invite = await group.create_invite(role)
    await owner.flush()
    await member.load_map(value.id)
    added = await _add_members(jazz, invite.secret, group.id, value.id, role)
    await until(group, lambda group: all(group.members().get(one) == role for one in added))

    async with asyncio.timeout(WITHIN_S):
        await group.remove_member(member.account_id)
    value.set("x", 2)
    await owner.flush()
    member.transact(value.id, [set_key("x", "after the removal")], private=False, made_at=now_ms() + 10)
    await member.flush()
    made = await js("create", actor="reader", url=jazz.url, name="reader")
    async with asyncio.timeout(WITHIN_S):
        await group.add_member(made["accountID"], "reader")
        newcomer = await nodes("newcomer")
        await group.add_member(newcomer.account_id, "reader")
    await owner.flush()
    assert content(await newcomer.load_map(value.id)) == {"x": 2}
    await js("until", actor="reader", id=value.id, expected={"x": 2})

    async with asyncio.timeout(WITHIN_S):
        for one in added:
            await group.remove_member(one)
    await owner.flush()
    assert not set(added) & set(group.members())
    for one in added:
        await js("untilRole", actor="reader", group=group.id, account=one, role=None)
    value.set("x", 3)
    await owner.flush()
    await js("until", actor="reader", id=value.id, expected={"x": 3})


async def _add_members(jazz: JazzServer, secret: str, group_id: str, other: str, role: str) -> list[str]:
    """Add one member of each kind of `UNLOADABLE` with an invite; return their ids."""
    async with stranger(jazz.url) as who:
        added = [await make(who, other) for make in UNLOADABLE.values()]
        who.agent = Agent.from_secret(agent_secret_from_seed(b58decode(secret.removeprefix("inviteSecret_z"))))
        session = who.session()
        await who.write(group_id, [trusting([set_key(one, role)]) for one in added], session=session)
        assert (await who.sessions(group_id))[session] == len(added)
    return added
