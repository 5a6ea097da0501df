"""A control block in a real Jazz node: of a changed listing, only the entries that changed are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.jazz import Credentials, Node
from reside.jazz.server import SyncServer
from reside.model.permissions import Grant, PermissionRef
from reside.replica import ControlBlock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

YES = Grant(granted=True)


def ref(number: int) -> PermissionRef:
    return PermissionRef(f"co_zGrantee{number}", "r.example/c.v1", "greet")


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with SyncServer() as server, Node(server.url, Credentials.generate()) as made:
        await made.register("alpha")
        yield made


async def test_a_new_entry_is_read_without_the_others(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    group = node.create_group()
    root = group.create_map({"id": 3, "name": "greeter", "permissions": group.create_map().id})
    writer, reader = await ControlBlock.open(node, root.id), await ControlBlock.open(node, root.id)
    for number in range(20):
        await writer.set_expected(ref(number), YES)
    assert await reader.refresh()
    assert len(reader.permissions()) == 20
    read, whole = [], reader.refresh_entry

    async def counted(key: str) -> bool:
        read.append(key)
        return await whole(key)

    monkeypatch.setattr(reader, "refresh_entry", counted)
    await writer.set_expected(ref(99), YES)
    await writer.set_expected(ref(3), Grant(granted=False))
    reader.take_changed()
    assert await reader.refresh()
    assert read == [ref(99).key]
    assert reader.find(ref(99)) is not None
    assert reader.take_changed() == {ref(99).account: {ref(99).key}}


async def test_an_entry_that_can_not_be_loaded_yet_is_tried_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    group = node.create_group()
    permissions = group.create_map()
    root = group.create_map({"id": 3, "name": "greeter", "permissions": permissions.id})
    block = await ControlBlock.open(node, root.id)
    permissions.set(ref(1).key, root.id.replace("co_z", "co_zz"))
    permissions.set(ref(2).key, group.create_map({}).id)
    monkeypatch.setitem(Node.load_map.__kwdefaults__, "grace", 0.0)
    assert not await block.refresh()
    assert not await block.refresh()
    writer = await ControlBlock.open(node, root.id)
    await writer.set_expected(ref(1), YES)
    assert await block.refresh()
    assert block.is_granted(ref(1)) is False
    assert block.find(ref(1)) is not None


async def test_an_entry_that_was_removed_is_reported_as_changed(node: Node) -> None:
    group = node.create_group()
    permissions = group.create_map()
    root = group.create_map({"id": 3, "name": "greeter", "permissions": permissions.id})
    block = await ControlBlock.open(node, root.id)
    await block.set_expected(ref(1), YES)
    await block.refresh()
    block.take_changed()
    assert not block.has_unread()
    permissions.delete(ref(1).key)
    assert block.has_unread()
    assert await block.refresh()
    assert block.find(ref(1)) is None
    assert block.take_changed() == {ref(1).account: {ref(1).key}}


async def test_an_entry_that_is_replaced_while_its_predecessor_is_loaded_is_loaded_next(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = node.create_group()
    permissions = group.create_map()
    root = group.create_map({"id": 3, "name": "greeter", "permissions": permissions.id})
    block, writer = await ControlBlock.open(node, root.id), await ControlBlock.open(node, root.id)
    permissions.set(ref(1).key, group.create_map({}).id)
    whole = block.refresh_entry
    meanwhile: list[str] = []

    async def replaced_meanwhile(key: str) -> bool:
        done = await whole(key)
        if not meanwhile:
            meanwhile.append(key)
            await writer.set_expected(ref(1), YES)
            block.has_unread()
        return done

    monkeypatch.setattr(block, "refresh_entry", replaced_meanwhile)
    await block.refresh()
    assert block.has_unread()
    assert await block.refresh()
    assert block.find(ref(1)) is not None


async def test_an_entry_is_reported_once_it_is_loaded_whoever_has_loaded_it(node: Node) -> None:
    """Somebody else may load it first, and then the permission loop finds nothing to load."""
    group = node.create_group()
    root = group.create_map({"id": 3, "name": "greeter", "permissions": group.create_map().id})
    writer, block = await ControlBlock.open(node, root.id), await ControlBlock.open(node, root.id)
    reported: list[str] = []
    block.on_change(lambda: reported.extend(list(block.take_changed())))
    await writer.set_expected(ref(1), YES)
    assert await block.refresh()
    assert reported == [ref(1).account]
