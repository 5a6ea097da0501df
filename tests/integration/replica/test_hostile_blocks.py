"""What a writer of a control block may leave in it: a replica in TypeScript carries out the other permissions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from support.ports import free_port
from support.replicas import GREETING, environment
from support.typescript import running

from reside.jazz import EVERYONE
from reside.model.permissions import Grant, PermissionRef

if TYPE_CHECKING:
    from support.replicas import AlphaDouble, Identity
    from support.typescript import TypeScript

pytestmark = pytest.mark.anyio

GRANTED = Grant(granted=True)
MISSING = "co_zQ1DPcZwTk1v7JKTCtBhbZJbPzz"
"""The id of a value that nobody has uploaded."""


async def test_entries_that_can_not_be_read_delay_no_other_permission(
    alpha_double: AlphaDouble, typescript: TypeScript
) -> None:
    greeter = await alpha_double.identity("greeter")
    await fill(alpha_double, greeter)
    ref = PermissionRef((await alpha_double.account("grantee")).account_id, GREETING, "greet")
    unknown = PermissionRef(ref.account, GREETING, "constructor")
    command = typescript.program("greeter")
    async with running(command, environment(greeter, free_port())), asyncio.timeout(20):
        await alpha_double.expect(greeter, unknown, GRANTED)
        for grant in (GRANTED, Grant(granted=False)):
            await alpha_double.expect(greeter, ref, grant)
            await alpha_double.until_current(greeter, ref, grant)
    entry = greeter.rcb.find(unknown)
    assert entry is not None
    assert entry.current is None  # the contract has no such permission


async def fill(alpha_double: AlphaDouble, identity: Identity) -> None:
    """Write entries of every wrong kind into the map of permissions."""
    node = alpha_double.node
    permissions = await node.load_map(str(identity.rcb.root["permissions"]))
    foreign = node.create_group()
    await foreign.add_member(EVERYONE, "reader")
    own = identity.rcb.root.group
    wrong: list[Any] = ["garbage", "", "co_z", "co_z!", MISSING, 7, None, {"granted": True}, own.create_list([]).id]
    wrong += [foreign.create_map({"account": "co_zA"}).id, own.create_map({"expected": {"granted": "yes"}}).id, own.id]
    for number, value in enumerate(wrong):
        permissions.set(f"co_zA{number}:{GREETING}:greet", value)
    await node.flush()
