"""What a former manager of control blocks left in them: only values of the block's own group count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.replicas import GREETING, AlphaDouble, greeting_contract

from reside.jazz import EVERYONE, Node
from reside.model.permissions import Grant, PermissionRef
from reside.replica import ControlBlock, Replica

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.replicas import Identity

    from reside.jazz import CoMap, Group

pytestmark = pytest.mark.anyio

GRANTED = Grant(granted=True)


class FormerManager:
    """An account that may write the block at first, and keeps entries in a group of its own."""

    def __init__(self, node: Node, group: Group) -> None:
        self.node = node
        self.own = group

    def entry(self, ref: PermissionRef) -> CoMap:
        """Return a map of the own group that says that `ref` is granted."""
        members = {"account": ref.account, "identity": ref.contract, "name": ref.name}
        return self.own.create_map({**members, "expected": GRANTED.document(), "current": GRANTED.document()})


@pytest.fixture
async def manager(alpha_double: AlphaDouble, identity: Identity) -> AsyncIterator[FormerManager]:
    credentials = await alpha_double.account("manager")
    await identity.rcb.root.group.add_member(credentials.account_id, "writer")
    await alpha_double.node.flush()
    async with Node(alpha_double.servers.jazz.url, credentials) as node:
        await node.login()
        group = node.create_group()
        await group.add_member(EVERYONE, "reader")
        yield FormerManager(node, group)


async def _end_of_the_right(alpha_double: AlphaDouble, identity: Identity, manager: FormerManager) -> None:
    await manager.node.flush()
    await alpha_double.node.catch_up()
    await identity.rcb.root.group.remove_member(manager.node.account_id)
    await alpha_double.node.flush()


async def test_an_entry_in_a_group_of_its_author_grants_nothing_and_is_replaced(
    alpha_double: AlphaDouble, identity: Identity, manager: FormerManager
) -> None:
    ref = PermissionRef(manager.node.account_id, GREETING, "greet")
    block = await manager.node.load_map(identity.rcb.id)
    permissions = await manager.node.load_map(str(block["permissions"]))
    permissions.set(ref.key, manager.entry(ref).id)
    await _end_of_the_right(alpha_double, identity, manager)
    async with Replica(greeting_contract()).start(identity.settings, serve=False) as context:
        await context.rcb.refresh()
        assert context.rcb.find(ref) is None
        assert not context.rcb.is_granted(ref)
        assert context.rcb.permissions() == ()
        await alpha_double.expect(identity, ref, GRANTED)
        await alpha_double.until_current(identity, ref, GRANTED)
        await alpha_double.expect(identity, ref, Grant(granted=False))
        await alpha_double.until_current(identity, ref, Grant(granted=False))


async def test_a_map_of_permissions_in_another_group_is_not_read(
    alpha_double: AlphaDouble, identity: Identity, manager: FormerManager
) -> None:
    mine = PermissionRef(manager.node.account_id, GREETING, "greet")
    honest = PermissionRef(alpha_double.node.account_id, GREETING, "greet")
    await alpha_double.expect(identity, honest, GRANTED)
    block = await manager.node.load_map(identity.rcb.id)
    block.set("permissions", manager.own.create_map({mine.key: manager.entry(mine).id}).id)
    await _end_of_the_right(alpha_double, identity, manager)
    async with Replica(greeting_contract()).start(identity.settings, serve=False) as context:
        await alpha_double.until_current(identity, honest, GRANTED)
        assert context.rcb.find(mine) is None
        assert [p.ref for p in context.rcb.permissions()] == [honest]
    again = await ControlBlock.load(alpha_double.node, identity.rcb.id)
    assert again.is_granted(honest)
