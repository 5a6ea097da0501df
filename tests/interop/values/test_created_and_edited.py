"""When and by whom values were created and last edited: as jazz-tools says, except for what strangers write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from interop.open_server import needs_open_server
from interop.strangers.stranger import set_key, stranger, trusting
from support.jazz_nodes import until

if TYPE_CHECKING:
    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio


async def _login(tools: JavaScript, jazz: JazzServer) -> str:
    made = await tools("create", url=jazz.url, name="worker")
    await tools("login", actor="worker", url=jazz.url, **made)
    await tools("flush", actor="worker")
    account: str = made["accountID"]
    return account


def _edited(value: CoMap) -> dict[str, Any]:
    return {"createdAt": value.created_at, "createdBy": value.created_by, "lastUpdatedAt": value.last_edited_at}


async def _shared_map(nodes: Nodes, account: str) -> CoMap:
    owner = await nodes("owner")
    group = owner.create_group()
    await group.add_member(account, "reader")
    await group.add_member("everyone", "reader")
    value = group.create_map({"by": "owner"})
    value.set("by", "owner again")
    await owner.flush()
    return value


async def test_both_languages_say_the_same(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    account = await _login(tools, jazz)
    value = await _shared_map(nodes, account)
    assert await tools("edited", actor="worker", id=value.id) == _edited(value)
    assert value.last_edited_by == value.created_by == value.group._host.account_id


async def test_a_value_of_javascript_says_the_same(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    account = await _login(tools, jazz)
    owner = await nodes("owner")
    group = owner.create_group()
    await group.add_member(account, "writer")
    await owner.flush()
    made = await tools("getOrCreate", actor="worker", owner=group.id, kind="map", unique="x", value={"by": "worker"})
    await tools("flush", actor="worker")
    value = await owner.load_map(made["id"])
    await until(value, {"by": "worker"})
    assert value.created_by == account
    assert await tools("edited", actor="worker", id=value.id) == _edited(value)


@needs_open_server
async def test_what_a_stranger_writes_edits_nothing(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    account = await _login(tools, jazz)
    value = await _shared_map(nodes, account)
    before = _edited(value)
    async with stranger(jazz.url) as who:
        await who.write(value.id, [trusting([set_key("by", "a stranger")], made_at=2**53)])
        assert await who.sessions(value.id)
    fresh = await (await nodes("reader")).load_map(value.id)
    assert _edited(fresh) == before
    assert _edited(value) == before
    assert (await tools("edited", actor="worker", id=value.id))["lastUpdatedAt"] == 2**53
