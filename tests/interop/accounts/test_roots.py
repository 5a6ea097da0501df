"""The root of an account: set on one side, found on the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.jazz import Credentials, InvalidContent, Node, NotPermitted

if TYPE_CHECKING:
    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

pytestmark = pytest.mark.anyio


async def test_javascript_finds_the_root_of_python(jazz: JazzServer, tools: JavaScript) -> None:
    credentials = Credentials.generate()
    login = {"accountID": credentials.account_id, "accountSecret": credentials.agent_secret}
    async with Node(jazz.url, credentials) as node:
        account = await node.register("Ada")
        account.set_root(await node.unique_map(account, "root", {"theme": "of Python"}))
        await node.flush()
    assert await tools("themeOf", actor="worker", url=jazz.url, **login) == "of Python"


async def test_python_finds_the_root_of_javascript(jazz: JazzServer, tools: JavaScript, nodes: Nodes) -> None:
    made = await tools("create", url=jazz.url, name="Grace")
    node = await nodes.login(made["accountID"], made["accountSecret"])
    assert node.account.root_id is None
    with pytest.raises(InvalidContent, match=r"has no root: its owner sets one with set_root\(\)"):
        await node.account.load_root()
    assert await tools("themeOf", actor="worker", url=jazz.url, **made) == "of JavaScript"
    await tools("flush", actor="worker")
    again = await nodes.login(made["accountID"], made["accountSecret"])
    assert (await again.account.load_root()).as_dict() == {"theme": "of JavaScript"}


async def test_only_the_account_itself_sets_its_root(nodes: Nodes) -> None:
    owner, other = await nodes("owner"), await nodes("other")
    stranger = await other.load_account(owner.account_id)
    with pytest.raises(NotPermitted, match="set the root of"):
        stranger.set_root(other.create_group().create_map())
    assert stranger.root_id is None


async def test_two_devices_share_a_unique_root(jazz: JazzServer, nodes: Nodes) -> None:
    credentials = Credentials.generate()
    async with Node(jazz.url, credentials) as node:
        await node.register("owner")
    devices = [await nodes.again(credentials) for _ in range(2)]
    for device in devices:
        device.account.set_root(await device.unique_map(device.account, "root", {"theme": "dark"}))
    for device in devices:
        await device.flush()
    fresh = await nodes.again(credentials)
    root = await fresh.account.load_root()
    assert root.as_dict() == {"theme": "dark"}
    assert {root.id} == {device.account.root_id for device in devices}
