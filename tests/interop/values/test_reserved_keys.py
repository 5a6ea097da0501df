"""Why the writer refuses some keys: JavaScript clients can't load a map that has one."""

import pytest
from interop.javascript import JavaScript, JavaScriptError
from support.jazz_nodes import Nodes
from support.jazz_server import JazzServer

from reside.jazz.values.comap import RESERVED_KEYS

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS))
async def test_javascript_cannot_load_a_map_with_a_reserved_key(
    key: str, jazz: JazzServer, js: JavaScript, nodes: Nodes
) -> None:
    owner = await nodes("owner")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    value._write([{"op": "set", "key": key, "value": 2}])  # as a client that does not check keys
    await owner.flush()
    assert value.as_dict() == {"x": 1, key: 2}
    await js("create", actor="reader", url=jazz.url, name="reader")
    with pytest.raises(JavaScriptError):
        assert await js("load", actor="reader", id=value.id) == {"x": 1, key: 2}
