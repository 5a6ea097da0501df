"""Control blocks: making one, and writing what an account shall be granted into those of others."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from reside.alpha import lookups
from reside.jazz import AccountId
from reside.model import lookup
from reside.model.permissions import sync
from reside.replica import ControlBlock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    from reside.alpha.data import AlphaData
    from reside.jazz import Node
    from reside.model.permissions import Grant, PermissionRef


async def make_block(data: AlphaData, number: int, name: str, account: str) -> str:
    """The id of a replica's control block, made if it is missing. The caller holds Alpha's lock.

    Args:
        data: Alpha's data.
        number: id of the replica, which is also the block's.
        name: name of the replica.
        account: the replica's account, which may write the block.
    """
    found = await lookups.find(data, lookup.rcb_by_id(number))
    if found is None:
        group = data.node.create_group(f"control block {name}")
        await group.extend(data.blocks_group)
        if account != data.node.account_id:
            await group.add_member(AccountId(account), "writer")
        permissions = group.create_map()
        members = {"id": number, "name": name, "requirements": {}, "permissions": permissions.id}
        found = group.create_map(members).id
        await lookups.point(data, lookup.rcb_by_id(number), found)
    lookups.add_once(data.blocks, found)
    return found


@asynccontextmanager
async def opened(node: Node, block_id: str) -> AsyncIterator[ControlBlock]:
    """A control block, for as long as the block runs."""
    block = await ControlBlock.load(node, block_id)
    try:
        yield block
    finally:
        block.close()


async def expect(
    node: Node, block_id: str, wanted: Mapping[PermissionRef, Grant], asked: Collection[PermissionRef]
) -> None:
    """Let a control block expect what is wanted, and out of all that was ever asked nothing else."""
    async with opened(node, block_id) as block:
        for ref, grant in sync(wanted, asked, block.permissions()).items():
            await block.expect(ref, grant)


async def add_expected(node: Node, block_id: str, wanted: Mapping[PermissionRef, Grant]) -> None:
    """Let a control block expect these grants too; nothing is withdrawn."""
    async with opened(node, block_id) as block:
        for ref, grant in wanted.items():
            await block.expect(ref, grant)


async def require(node: Node, block_id: str, requirements: Mapping[str, list[str]]) -> None:
    """Write which accounts serve each requirement of the block's replica."""
    async with opened(node, block_id) as block:
        block.require({key: [AccountId(account) for account in accounts] for key, accounts in requirements.items()})
