"""Control blocks: create them, and write the expected grants of an account into those of other replicas."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from reside.alpha import lookups
from reside.jazz import AccountId
from reside.model import lookup
from reside.replica import ControlBlock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from reside.alpha.data import AlphaData
    from reside.jazz import Node
    from reside.model.permissions import Grant, PermissionRef


async def make_block(data: AlphaData, number: int, name: str, account: str) -> str:
    """Return the id of a replica's control block; create the block if it does not exist. The caller holds Alpha's lock.

    Args:
        data: Alpha's data.
        number: id of the replica, which is also the id of the block.
        name: name of the replica.
        account: the replica's account, which becomes a writer of the block.
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
        await lookups.set_target(data, lookup.rcb_by_id(number), found)
    lookups.add_once(data.blocks, found)
    return found


@asynccontextmanager
async def opened(node: Node, block_id: str) -> AsyncIterator[ControlBlock]:
    """Load a control block, and close it when the `async with` block ends."""
    block = await ControlBlock.load(node, block_id)
    try:
        yield block
    finally:
        block.close()


async def add_expected(node: Node, block_id: str, expected: Mapping[PermissionRef, Grant]) -> None:
    """Add expected grants to a control block; the others stay."""
    async with opened(node, block_id) as block:
        for ref, grant in expected.items():
            await block.set_expected(ref, grant)


async def set_requirements(node: Node, block_id: str, requirements: Mapping[str, list[str]]) -> None:
    """Write which accounts serve each requirement of the block's replica."""
    async with opened(node, block_id) as block:
        block.set_requirements(
            {key: [AccountId(account) for account in accounts] for key, accounts in requirements.items()}
        )
