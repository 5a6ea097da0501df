"""Changes of a group on which cojson throws before it knows the role of their author: the server refuses them.

Otherwise no JavaScript client could load the group, or anything that it owns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from interop.strangers.stranger import stranger, trusting
from support.jazz_nodes import content, until

if TYPE_CHECKING:
    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

pytestmark = pytest.mark.anyio

UNREADABLE: dict[str, Any] = {
    "no key": [{"op": "set", "value": "admin"}],
    "a number as key": [{"op": "set", "key": 1, "value": "admin"}],
    "null as key": [{"op": "set", "key": None, "value": "admin"}],
    "null as change": [None],
}


@pytest.mark.parametrize("target", ["group", "account"])
@pytest.mark.parametrize("kind", UNREADABLE)
async def test_javascript_clients_go_on_reading(
    kind: str, target: str, jazz: JazzServer, nodes: Nodes, js: JavaScript
) -> None:
    owner = await nodes("owner")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await owner.flush()
    await js("create", actor="connected", url=jazz.url, name="connected")
    assert await js("load", actor="connected", id=value.id) == {"x": 1}
    attacked = {"group": group.id, "account": owner.account_id}[target]
    async with stranger(jazz.url) as who:
        session = who.session()
        await who.write(attacked, [trusting(UNREADABLE[kind])], session=session)
        assert session not in await who.sessions(attacked)
    value.set("x", 2)
    await owner.flush(timeout=60)
    await js("until", actor="connected", id=value.id, expected={"x": 2})
    await js("create", actor="fresh", url=jazz.url, name="fresh")
    assert await js("load", actor="fresh", id=value.id) == {"x": 2}
    reader = await nodes("reader")
    await until(await reader.load_map(value.id, timeout=60), {"x": 2})
    assert content(await (await nodes("another")).load_map(value.id, timeout=60)) == {"x": 2}
