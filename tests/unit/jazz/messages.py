"""Values of detached nodes, and the messages that transfer them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.jazz_controlled_nodes import DetachedNode, exchange, exchange_during

if TYPE_CHECKING:
    from reside.jazz import CoMap
    from reside.jazz.memory.covalue import Core


def core_of(node: DetachedNode, value: CoMap) -> Core:
    """Return the log that a node holds of a value."""
    return node._host.store.core(value.id)


async def public_map(writer: DetachedNode, hub: DetachedNode, init: dict[str, Any]) -> CoMap:
    """Return a new map that everyone may read, which the server has."""
    group = writer.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map(init)
    await exchange(hub, writer)
    return value


def whole_of(node: DetachedNode, value: CoMap) -> dict[str, Any]:
    """Return the content message of a whole value, as a server would send it."""
    node.take()
    node.give({"action": "load", "id": value.id, "header": False, "sessions": {}})
    (message,) = (item for item in node.take() if item["action"] == "content")
    return message


async def get_to_know(reader: DetachedNode, hub: DetachedNode, writer: DetachedNode) -> None:
    """Give a node the account of another."""
    await exchange_during(hub, reader, reader.load_account(writer.account_id))
    reader.take()
