"""Sessions that only a hostile client writes, in values of others: they cost nobody but their author.

The honest server relays all of them, because it checks signatures and little else.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from interop.open_server import needs_open_server
from interop.proxy import proxy
from interop.strangers.poison import POISON
from interop.strangers.stranger import stranger
from support.jazz_nodes import content, until

from reside.jazz import Credentials, Node, SqliteStore, WritePolicy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

pytestmark = [pytest.mark.anyio, needs_open_server]

CAREFUL = WritePolicy(refuse_after_removal=True, max_ahead_ms=60_000, remember=True)
TARGETS = ("map", "group", "account", "profile")


@pytest.fixture
def poisoned(jazz: JazzServer) -> Callable[[str], Awaitable[None]]:
    """Return a function that writes every session of `POISON` to a value, and waits until the server has them."""

    async def poison(co_id: str) -> None:
        for make in POISON.values():
            async with stranger(jazz.url) as who:
                session, transactions = make(who)
                await who.write(co_id, transactions, session=session)
                assert session in await who.sessions(co_id), "the server refuses it: take it out of the table"

    return poison


@pytest.mark.parametrize("kind", POISON)
async def test_each_poisonous_session_alone_leaves_a_map_readable(
    kind: str, jazz: JazzServer, nodes: Nodes, js: JavaScript
) -> None:
    owner = await nodes("owner")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await owner.flush()
    async with stranger(jazz.url) as who:
        session, transactions = POISON[kind](who)
        await who.write(value.id, transactions, session=session)
        assert session in await who.sessions(value.id), "the server refuses it: take it out of the table"
    for reader in (await nodes("careless"), await nodes("careful", policy=CAREFUL)):
        found = await reader.load_map(value.id, timeout=60)
        assert content(found) == {"x": 1}
        assert [why for theirs, _, why in found.refusals() if theirs == session] != [None]
    await js("create", actor="reader", url=jazz.url, name="reader")
    assert await js("load", actor="reader", id=value.id) == {"x": 1}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stored", [False, True])
async def test_all_of_them_in_one_value_hurt_nobody(
    target: str, stored: bool, jazz: JazzServer, poisoned: Callable[[str], Awaitable[None]], tmp_path: Path
) -> None:
    """The owner goes on writing, over a new connection and after a restart; fresh readers see what it writes."""
    credentials = Credentials.generate()

    def again() -> Node:
        store = SqliteStore(tmp_path / "jazz.db") if stored else None
        return Node(line.url, credentials, store=store)

    async with proxy(jazz.url) as line, asyncio.timeout(120):
        async with again() as owner:
            await owner.register("owner")
            group = owner.create_group()
            await group.add_member("everyone", "reader")
            value = group.create_map({"x": 1})
            await owner.flush()
            account = await owner.load_account(owner.account_id)
            targets = {
                "map": value.id,
                "group": group.id,
                "account": owner.account_id,
                "profile": account.profile_id or "",
            }
            await poisoned(targets[target])
            value.set("x", 2)
            await owner.flush(timeout=60)
            line.cut_after = ("up", line.count("up") + 1)
            value.set("x", 3)
            await owner.flush(timeout=60)
        async with again() as owner:
            await owner.login()
            found = await owner.load_map(value.id, timeout=60)
            assert content(found) == {"x": 3}
            found.set("x", 4)
            later = (await owner.load_group(group.id)).create_map({"y": 1})
            await owner.flush(timeout=60)
    for policy in (None, CAREFUL):
        async with Node(jazz.url, Credentials.generate(), policy=policy) as reader:
            await reader.register("reader")
            theirs = await reader.load_map(value.id, timeout=60)
            await until(theirs, {"x": 4})
            assert content(await reader.load_map(later.id, timeout=60)) == {"y": 1}
