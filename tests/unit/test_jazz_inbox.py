"""Serving an inbox without a server."""

import asyncio

import pytest
from support.jazz_liar import carried
from support.jazz_wire import Loose, registered

from reside.jazz import Inbox, InboxMessage, NodeClosed

pytestmark = pytest.mark.anyio


async def test_serving_ends_with_the_node() -> None:
    hub = Loose()
    node = await registered(hub, "owner")
    inbox = await carried(hub, node, Inbox.open(node))

    async def handle(message: InboxMessage) -> None:
        raise AssertionError(message)

    serving = asyncio.create_task(inbox.serve(handle))
    await asyncio.sleep(0)
    await node.close()
    with pytest.raises(NodeClosed):
        await serving
