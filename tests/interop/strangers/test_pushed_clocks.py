"""Dates in the future that strangers and readers may write: they delay no change of an admin, for any reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from interop.strangers.stranger import set_key, stranger, trusting
from support.jazz_controlled_nodes import SwitchedNode
from support.jazz_nodes import content, until

from reside.jazz import Credentials, WritePolicy, now_ms

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

    from reside.jazz import CoMap, Group, Node

pytestmark = pytest.mark.anyio

CAREFUL = WritePolicy(refuse_after_removal=True, max_ahead_ms=60_000, remember=True)
FAR = 2**53 - 1
YEAR = 366 * 86_400_000
AHEAD = (59_000, FAR)
"""How far strangers date their transactions ahead in ms: within the limit of careful nodes, and as far as possible."""


@dataclass
class Readers:
    """Readers of both languages, with and without a policy."""

    jazz: JazzServer
    nodes: Nodes
    js: JavaScript

    async def ignore(self, member: SwitchedNode, group: Group, value: CoMap) -> None:
        """Check that what a removed member writes now counts for no reader, although it goes on writing."""
        expected = content(value)
        member.transact(value.id, [set_key("x", "after the removal")], private=False, made_at=now_ms() + 10)
        await member.flush()
        assert group.role_of(member.account_id) == "reader", "everyone may read"
        for policy in (None, CAREFUL):
            reader = await self.nodes("reader", policy=policy)
            assert content(await reader.load_map(value.id)) == expected
        await self.js("create", actor="reader", url=self.jazz.url, name="reader")
        await self.js("until", actor="reader", id=value.id, expected=expected)


@pytest.fixture
def readers(jazz: JazzServer, nodes: Nodes, js: JavaScript) -> Readers:
    """Return readers on the server."""
    return Readers(jazz, nodes, js)


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


def _date(ahead: int) -> int:
    return ahead if ahead == FAR else now_ms() + ahead


async def _shared_map(owner: Node, member: Node, role: Any) -> tuple[Group, CoMap]:
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    await group.add_member(member.account_id, role)
    value = group.create_map({"x": 1})
    await owner.flush()
    await member.load_map(value.id)
    return group, value


@pytest.mark.parametrize("ahead", AHEAD)
async def test_a_strangers_own_revocation_delays_no_removal(
    ahead: int, readers: Readers, owner: Node, member: SwitchedNode
) -> None:
    """It is valid, because anyone may revoke themselves; a removal dated after it would have no effect until then."""
    group, value = await _shared_map(owner, member, "writer")
    async with stranger(readers.jazz.url) as who:
        await who.write(group.id, [trusting([set_key(who.author, "revoked")], made_at=_date(ahead))])
        await who.sessions(group.id)
    await owner.catch_up()
    await group.remove_member(member.account_id)
    await owner.flush()
    await readers.ignore(member, group, value)


@pytest.mark.parametrize("ahead", AHEAD)
async def test_a_members_own_revocation_in_the_future_does_not_stop_its_removal(
    ahead: int, readers: Readers, owner: Node, member: SwitchedNode
) -> None:
    group, value = await _shared_map(owner, member, "writer")
    member.transact(group.id, [set_key(member.account_id, "revoked")], private=False, made_at=_date(ahead))
    await member.flush()
    await owner.catch_up()
    await group.remove_member(member.account_id)
    await owner.flush()
    await readers.ignore(member, group, value)


@pytest.mark.parametrize(("policy", "ahead"), [(None, 59_000), (None, 200 * YEAR), (CAREFUL, 59_000)])
async def test_a_role_that_an_admin_with_a_wrong_clock_gave_can_be_taken_back(
    policy: WritePolicy | None, ahead: int, readers: Readers, member: SwitchedNode
) -> None:
    """The removal counts now and after the date of the role, and so does a role that is given again.

    A careful node that refuses the date does not know of the role.
    """
    owner = await readers.nodes("owner", policy=policy)
    group, value = await _shared_map(owner, member, "reader")
    hasty = await readers.nodes("hasty", clock=lambda: now_ms() + ahead)
    await group.add_member(hasty.account_id, "admin")
    await owner.flush()
    await (await hasty.load_group(group.id)).add_member(member.account_id, "writer")
    await hasty.flush()
    await owner.catch_up()
    await group.remove_member(member.account_id)
    await owner.flush()
    await readers.ignore(member, group, value)
    late = {"op": "set", "key": "late", "value": True}
    member.transact(value.id, [late], private=False, made_at=now_ms() + ahead + 100_000)
    await member.flush()
    reader = await readers.nodes("reader")
    theirs = await reader.load_map(value.id)
    assert "late" not in content(theirs)
    await group.add_member(member.account_id, "writer")
    await until(theirs, lambda theirs: theirs.get("late") is True)


@pytest.mark.parametrize("ahead", AHEAD)
async def test_a_readers_pointer_to_a_branch_does_not_date_what_others_write(
    ahead: int, js: JavaScript, jazz: JazzServer, owner: Node, member: SwitchedNode
) -> None:
    _, value = await _shared_map(owner, member, "reader")
    pointer = {"branch": "mine", "ownerId": member.account_id}
    member.transact(value.id, [], private=False, made_at=_date(ahead), meta=pointer)
    await member.flush()
    await owner.catch_up()
    value.set("x", 2)
    await owner.flush()
    assert value._core.transactions[-1].made_at <= now_ms()
    await js("create", actor="reader", url=jazz.url, name="reader")
    await js("until", actor="reader", id=value.id, expected={"x": 2})


async def test_a_writers_date_in_the_future_does_not_date_what_others_write(
    nodes: Nodes, owner: Node, member: SwitchedNode
) -> None:
    """Its own key keeps its value until then, as in JavaScript; other keys can be written at once."""
    _, value = await _shared_map(owner, member, "writer")
    member.transact(value.id, [set_key("y", 1)], private=True, made_at=now_ms() + 59_000)
    await member.flush()
    await owner.catch_up()
    value.set("x", 2)
    await owner.flush()
    assert value._core.transactions[-1].made_at <= now_ms()
    reader = await nodes("reader")
    await until(await reader.load_map(value.id), {"x": 2, "y": 1})
