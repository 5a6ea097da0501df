"""Inboxes without a server, and their invites."""

import asyncio
from unittest.mock import patch

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange_during, registered

from reside.jazz import Inbox, InboxMessage, InvalidArgument, Invite, NodeClosed

pytestmark = pytest.mark.anyio


async def test_serving_ends_with_the_node() -> None:
    hub = DetachedNode()
    node = await registered(hub, "owner")
    inbox = await exchange_during(hub, node, Inbox.open(node))

    async def handle(message: InboxMessage) -> None:
        raise AssertionError(message)

    serving = asyncio.create_task(inbox.serve(handle))
    await asyncio.sleep(0)
    await node.close()
    with pytest.raises(NodeClosed):
        await serving


def test_an_invite_with_a_huge_secret_is_refused_without_decoding() -> None:
    """The ticket comes from another account's profile, and decoding base58 takes quadratic time."""
    with patch("reside.jazz.groups.invites.b58decode") as decoded, pytest.raises(InvalidArgument, match="malformed"):
        Invite.parse(f"co_z1/inviteSecret_z{'2' * 1_000_000}")
    decoded.assert_not_called()
