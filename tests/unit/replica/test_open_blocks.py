"""Open control blocks: what they keep in memory, and which changes they report."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from weakref import ReferenceType
from weakref import ref as weak_reference

import pytest

from reside.jazz import Credentials, Node
from reside.jazz.server import SyncServer
from reside.model.permissions import Grant, PermissionRef
from reside.replica import ControlBlock
from reside.replica.open_blocks import OpenBlocks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio

REF = PermissionRef("co_zGrantee", "r.example/c.v1", "greet")


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with SyncServer() as server, Node(server.url, Credentials.generate()) as made:
        await made.register("alpha")
        yield made


def block_of(node: Node) -> CoMap:
    group = node.create_group()
    return group.create_map({"id": 3, "name": "greeter", "permissions": group.create_map().id})


async def test_few_blocks_without_loaded_permissions_are_kept_and_none_is_watched(node: Node) -> None:
    root, opened = block_of(node), list[ReferenceType[ControlBlock]]()
    watched = node.statistics.watchers

    async def load(_: int) -> ControlBlock:
        block = await ControlBlock.open(node, root.id)
        opened.append(weak_reference(block))
        return block

    blocks = OpenBlocks(load, lambda _: None)
    for number in range(20):
        assert await blocks.find(number) is await blocks.find(number)
    assert len(opened) == 20
    assert [reference() is None for reference in opened] == [True] * 12 + [False] * 8
    assert node.statistics.watchers == watched
    again = await blocks.find(0)
    assert again is not None
    assert again.name == "greeter"


async def test_a_block_with_a_loaded_permission_is_kept_and_reports_its_changes(node: Node) -> None:
    root, reported, arrived = block_of(node), list[str](), asyncio.Event()

    def changed(account: str) -> None:
        reported.append(account)
        arrived.set()

    blocks = OpenBlocks(lambda _: ControlBlock.open(node, root.id), changed)
    found = await blocks.find(3)
    assert found is not None
    await found.set_expected(REF, Grant(granted=True))
    kept = weak_reference(found)
    del found
    assert await blocks.find(3) is kept()
    arrived.clear()
    other = await ControlBlock.open(node, root.id)
    await other.set_expected(REF, Grant(granted=False))
    async with asyncio.timeout(60):
        await arrived.wait()
    assert set(reported) == {REF.account}
    blocks.close()
    other.close()
    assert kept() is None
