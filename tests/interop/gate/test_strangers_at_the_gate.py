"""What strangers write: the server in members mode neither stores nor relays it, and says so to its sender."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from interop.gate.conftest import metrics
from interop.strangers.poison import POISON
from interop.strangers.stranger import Stranger, set_key, stranger, trusting
from support.jazz_nodes import Nodes, content, until
from support.jazz_server import jazz_server

from reside.jazz import CoMap, Group, Node, now_ms
from reside.jazz.wire.header import group_header, owned_header, unique_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from interop.javascript import JavaScript
    from support.jazz_server import JazzServer

pytestmark = pytest.mark.anyio

ABSENT = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
FAR = 2**53 - 1
TARGETS = ("map", "group", "account", "profile")


async def shared(owner: Node) -> tuple[Group, CoMap]:
    """Return a group that everyone can read, and a map in it; both are on the server."""
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await owner.flush()
    return group, value


async def stored(jazz: JazzServer, co_id: str) -> dict[str, int]:
    """Return the sessions of a value that the server has for another client."""
    async with stranger(jazz.url) as other:
        return await other.sessions(co_id)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", POISON)
async def test_no_session_of_a_stranger_passes(kind: str, target: str, jazz: JazzServer, nodes: Nodes) -> None:
    owner = await nodes("owner")
    group, value = await shared(owner)
    targets = {"map": value.id, "group": group.id, "account": owner.account_id, "profile": owner.account.profile.id}
    co_id = targets[target]
    before = await stored(jazz, co_id)
    async with stranger(jazz.url) as who:
        session, transactions = POISON[kind](who)
        await who.write(co_id, transactions, session=session)
        assert await who.reported(co_id) == {session: 1}
    assert await stored(jazz, co_id) == before


GROUP_CHANGES: dict[str, Callable[[Stranger], Any]] = {
    "its own revocation": lambda who: set_key(who.author, "revoked"),
    "a role for itself": lambda who: set_key(who.author, "admin"),
    "a role for everyone": lambda who: set_key("everyone", "writer"),
    "a key to write with": lambda who: set_key(f"writeKeyFor_{who.author}", "key_z1"),
    "another read key": lambda who: set_key("readKey", "key_z1"),
    "a parent": lambda who: set_key(f"parent_{ABSENT}", "extend"),
    "a member that nobody knows": lambda who: set_key(ABSENT, "reader"),
}


@pytest.mark.parametrize("made_at", [None, 1, FAR])
@pytest.mark.parametrize("kind", GROUP_CHANGES)
async def test_no_change_of_a_group_by_a_stranger_passes(
    kind: str, made_at: int | None, jazz: JazzServer, nodes: Nodes
) -> None:
    owner = await nodes("owner")
    group, value = await shared(owner)
    before = await stored(jazz, group.id)
    async with stranger(jazz.url) as who:
        session = who.session()
        await who.write(group.id, [trusting([GROUP_CHANGES[kind](who)], made_at=made_at)], session=session)
        assert await who.reported(group.id) == {session: 1}
    assert await stored(jazz, group.id) == before
    member = await nodes("member")
    await group.add_member(member.account_id, "writer")
    await owner.flush()
    (await member.load_map(value.id)).set("x", 2)
    await until(value, {"x": 2})


async def test_those_who_watch_a_value_get_nothing_of_a_stranger(
    jazz: JazzServer, nodes: Nodes, js: JavaScript
) -> None:
    owner = await nodes("owner")
    _, value = await shared(owner)
    await js("create", actor="js", url=jazz.url, name="js")
    assert await js("load", actor="js", id=value.id) == {"x": 1}
    async with stranger(jazz.url) as who:
        for make in POISON.values():
            await who.write(value.id, [trusting([set_key("x", "forged")])], session=who.session())
            session, transactions = make(who)
            if session.startswith(who.author):
                await who.write(value.id, transactions, session=session)
        await who.write(value.id, [trusting()], session=(last := who.session()))
        while last not in await who.reported(value.id):
            pass
    value.set("x", 2)
    await owner.flush()
    await js("until", actor="js", id=value.id, expected={"x": 2})
    assert all(why is None for _, _, why in value.refusals())
    sessions = (await js("knownState", actor="js", id=value.id))["sessions"]
    assert all(session.startswith(owner.account_id) for session in sessions)


async def test_a_stranger_cannot_take_a_unique_name(jazz: JazzServer, nodes: Nodes) -> None:
    owner = await nodes("owner")
    group, _ = await shared(owner)
    header = unique_header("comap", group.id, "settings")
    async with stranger(jazz.url) as who:
        await who.write(header.co_id, [trusting([set_key("x", 2)])], header=dict(header.raw))
        await who.reported(header.co_id)
        await who.send({"action": "content", "id": header.co_id, "priority": 3, "header": dict(header.raw), "new": {}})
        await who.send({"action": "load", "id": group.id, "header": False, "sessions": {}})
        await who.reported(header.co_id)
    reader = await nodes("reader")
    assert await reader.find_unique_map(group.id, "settings") is None
    made = await owner.unique_map(group, "settings", {"x": 1})
    await owner.flush()
    assert all(why is None for _, _, why in made.refusals())
    assert content(await reader.load_map(made.id)) == {"x": 1}


async def test_a_stranger_cannot_write_to_a_foreign_group(jazz: JazzServer, nodes: Nodes) -> None:
    owner = await nodes("owner")
    group, _ = await shared(owner)
    header = owned_header("comap", group.id, now_ms())
    async with stranger(jazz.url) as who:
        await who.write(header.co_id, [trusting([set_key("x", 1)])], header=dict(header.raw))
        await who.reported(header.co_id)
    async with stranger(jazz.url) as other:
        assert await other.sessions(header.co_id) == {}


async def test_content_of_an_owner_that_nobody_knows_is_refused_after_a_while(jazz: JazzServer) -> None:
    header = owned_header("comap", ABSENT, now_ms())
    async with stranger(jazz.url) as who:
        session = who.session()
        await who.write(header.co_id, [trusting([set_key("x", 1)])], session=session, header=dict(header.raw))
        assert await who.reported(header.co_id) == {session: 1}
    assert metrics(jazz)["reside_jazz_held_values"] == 0
    assert metrics(jazz)['reside_jazz_refusals_total{reason="a value that it depends on is unknown"}'] >= 1


async def test_content_waits_for_its_owner(jazz: JazzServer) -> None:
    """The owner comes later on the same connection, as when a client sends a value before its group."""
    async with stranger(jazz.url) as who:
        group = group_header(who.author, None, now_ms())
        value = owned_header("comap", group.co_id, now_ms())
        session = who.session()
        await who.write(value.co_id, [trusting([set_key("x", 1)])], session=session, header=dict(value.raw))
        await who.write(
            group.co_id, [trusting([set_key(who.author, "admin")], made_at=1)], session=session, header=dict(group.raw)
        )
        assert await who.reported(value.co_id) == {session: 1}
    assert await stored(jazz, value.co_id) == {session: 1}


async def test_what_one_connection_makes_the_server_hold_is_bounded() -> None:
    with jazz_server(MODE="members", HOLD_S="600") as server:
        async with stranger(server.url) as who:
            for _ in range(1100):
                header = owned_header("comap", ABSENT, now_ms())
                await who.write(header.co_id, [trusting()], header=dict(header.raw))
            assert await who.reported(header.co_id)
            assert metrics(server)["reside_jazz_held_values"] == 1000
            async with Nodes(server.url) as nodes:
                await shared(await nodes("owner"))
        assert "too much content of the connection waits for other values" in server.log


async def test_a_forged_signature_changes_nothing_on_the_server(jazz: JazzServer, nodes: Nodes) -> None:
    """What a message depends on is noted by cojson before it is verified: readers would get it with each load."""
    owner = await nodes("owner")
    group, value = await shared(owner)
    before = await stored(jazz, group.id)
    async with stranger(jazz.url) as who:
        attached = await who.publish_account()
        session = next(iter(before)) + "1"
        await who.write(group.id, [trusting([set_key(attached, "reader")])], session=session)
        await who.sessions(attached)
    assert await stored(jazz, group.id) == before
    async with stranger(jazz.url) as other:
        await other.send({"action": "load", "id": value.id, "header": False, "sessions": {}})
        ids = set()
        while value.id not in ids:
            ids.add(json.loads(await other._socket.recv()).get("id"))
    assert attached not in ids


async def test_the_holder_of_an_invite_cannot_block_a_group(jazz: JazzServer, nodes: Nodes) -> None:
    """All content of a group waits in cojson while a member is unknown; the gate refuses the change alone."""
    owner, member = await nodes("owner"), await nodes("member")
    group, value = await shared(owner)
    invite = await group.create_invite("writer")
    await owner.flush()
    async with stranger(jazz.url) as who:
        who.agent = invite._agent
        session = who.session()
        await who.write(group.id, [trusting([set_key(ABSENT, "writer")])], session=session)
        await group.add_member(member.account_id, "writer")
        await owner.flush(timeout=60)
        assert session in await who.reported(group.id)
    (await member.load_map(value.id)).set("x", 2)
    await until(value, {"x": 2})
