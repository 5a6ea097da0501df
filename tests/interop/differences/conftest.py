"""A group with a member that writes without checks, and readers of both libraries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from support.jazz_controlled_nodes import SwitchedNode
from support.jazz_nodes import content

from reside.jazz import Credentials, Group, Node, now_ms

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer


@dataclass
class Setup:
    """An admin and a writer of one group that everyone may read.

    Attributes:
        admin: an honest account.
        writer: an account that writes anything.
        group: the group, as the admin sees it.
        start: a time before all writes, ms since the epoch.
    """

    jazz: JazzServer
    nodes: Nodes
    js: JavaScript
    admin: Node
    writer: SwitchedNode
    group: Group
    start: int

    async def write(
        self,
        co_id: str,
        *changes: Any,
        meta: dict[str, Any] | None = None,
        private: bool = False,
        made_at: int | None = None,
    ) -> None:
        """Write one transaction as the writer."""
        await self.writer.load(co_id)
        at = now_ms() if made_at is None else made_at
        self.writer.transact(co_id, list(changes), private=private, made_at=at, meta=meta)

    async def python(self, co_id: str) -> Any:
        """Return the value as a new Python reader sees it."""
        await self.writer.flush()
        await self.admin.flush()
        return await (await self.nodes("reader")).load(co_id)

    async def javascript(self, co_id: str, op: str = "load") -> Any:
        """Return the content that a new JavaScript reader sees, or what another operation of the driver returns."""
        await self.writer.flush()
        await self.admin.flush()
        await self.js("create", actor="reader", url=self.jazz.url, name="reader")
        return await self.js(op, actor="reader", id=co_id)

    async def both(self, co_id: str) -> Any:
        """Return the content, after checking that readers of both libraries see the same."""
        expected = await self.javascript(co_id)
        assert content(await self.python(co_id)) == expected
        return expected


@pytest.fixture
async def setup(jazz: JazzServer, nodes: Nodes, js: JavaScript) -> AsyncIterator[Setup]:
    """Yield a setup."""
    start = now_ms()
    admin = await nodes("admin")
    writer = SwitchedNode(jazz.url, Credentials.generate(), clock=now_ms)
    await writer.online()
    await writer.register("writer")
    await writer.flush()
    group = admin.create_group()
    await group.add_member(writer.account_id, "writer")
    await group.add_member("everyone", "reader")
    await admin.flush()
    await (await writer.load_group(group.id)).uploaded()
    yield Setup(jazz, nodes, js, admin, writer, group, start)
    await writer.leave()


def set_key(key: Any, value: Any, op: str = "set") -> dict[str, Any]:
    """Return a change of a map."""
    return {"op": op, "key": key, "value": value}
