"""Two accounts that may write a control block create an entry at the same time: it is one entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.replicas import GREETING, AlphaDouble

from reside.jazz import Node
from reside.model.permissions import Grant, PermissionRef
from reside.replica import ControlBlock
from reside.testing.alpha import until

if TYPE_CHECKING:
    from support.replicas import Identity

pytestmark = pytest.mark.anyio

GRANTED, REVOKED = Grant(granted=True), Grant(granted=False)


async def test_two_who_create_an_entry_at_the_same_time_write_the_same_one(
    alpha_double: AlphaDouble, identity: Identity
) -> None:
    """So what one of them writes later is seen by the other, whoever was first."""
    credentials = await alpha_double.account("manager")
    await identity.rcb.root.group.add_member(credentials.account_id, "writer")
    await alpha_double.node.flush()
    ref = PermissionRef(alpha_double.node.account_id, GREETING, "greet")
    async with Node(alpha_double.servers.jazz.url, credentials) as node:
        await node.login()
        theirs, mine = await ControlBlock.load(node, identity.rcb.id), identity.rcb
        await theirs.set_expected(ref, Grant(granted=True, params={"by": "manager"}))
        await mine.set_expected(ref, GRANTED)  # neither has seen the entry of the other
        await node.flush()
        await alpha_double.node.flush()
        for writer, reader, account in (
            (theirs, mine, node.account_id),
            (mine, theirs, alpha_double.node.account_id),
        ):
            for grant in (REVOKED, GRANTED):
                await writer.set_expected(ref, grant)
                await until(
                    reader, lambda b=reader, g=grant: (found := b.find(ref)) is not None and found.expected == g
                )
            assert reader.expected_by(ref) == account
        listing = await node.load_map(str(mine.root["permissions"]))
        assert len({edit.value for edit in listing.history(ref.key)}) == 1, "neither has replaced the other's entry"
        theirs.close()
