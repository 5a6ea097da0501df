"""Content that depends on a value which does not exist: it waits alone, and delays nothing else about the same value.

cojson's server keeps all content of a value back, for all clients, as long as one message of anyone depends on an
unknown value.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest
from interop.open_server import needs_open_server
from interop.strangers.stranger import Stranger, set_key, stranger, trusting
from support.jazz_nodes import content, until

from reside.jazz.wire.crypto import Agent, new_agent_secret
from reside.jazz.wire.header import account_header

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from interop.javascript import JavaScript
    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

    from reside.jazz import CoMap, Group

pytestmark = pytest.mark.anyio

UNKNOWN = account_header(Agent.from_secret(new_agent_secret()).agent_id).co_id
NO_ID = "co_zé0O"


def _header(owner: str, **meta: str) -> dict[str, Any]:
    ruleset = {"type": "ownedByGroup", "group": owner}
    return {"type": "comap", "ruleset": ruleset, "meta": meta or None, "createdAt": None, "uniqueness": "x"}


def _member(who: Stranger, group: str, _value: str, key: str = UNKNOWN) -> dict[str, Any]:
    return who.content(group, [trusting([set_key(key, "writer")])])


MESSAGES: dict[str, Callable[[Stranger, str, str], dict[str, Any]]] = {
    "an unknown author": lambda who, _group, value: who.content(
        value, [trusting([set_key("x", "forged")])], session=f"{UNKNOWN}_session_z1"
    ),
    "an unknown author in the group": lambda who, group, _value: who.content(
        group, [trusting([set_key("x", "writer")])], session=f"{UNKNOWN}_session_z1"
    ),
    "an unknown member": _member,
    "a member that is no id": lambda who, group, value: _member(who, group, value, NO_ID),
    "an unknown parent": lambda who, group, value: _member(who, group, value, f"parent_{UNKNOWN}"),
    "many unknown members": lambda who, group, _value: who.content(
        group, [trusting([set_key(f"{UNKNOWN}{number}", "writer")]) for number in range(2000)]
    ),
    "a header of an unknown owner": lambda who, _group, value: (
        who.content(value, [trusting()]) | {"header": _header(UNKNOWN)}
    ),
    "a header of an unknown branch": lambda who, group, value: (
        who.content(value, [trusting()]) | {"header": _header(group, source=UNKNOWN, branch="x")}
    ),
    "a header for the group": lambda who, group, _value: (
        who.content(group, [trusting()]) | {"header": _header(UNKNOWN)}
    ),
}


async def _shared_map(nodes: Nodes) -> tuple[Group, CoMap]:
    owner = await nodes("owner")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await owner.flush()
    return group, value


@pytest.fixture
async def reader(jazz: JazzServer, js: JavaScript) -> Callable[[str], Awaitable[Any]]:
    """Return a function that loads a map with a new JavaScript client."""
    numbers = itertools.count()

    async def load(co_id: str) -> Any:
        actor = f"reader {next(numbers)}"
        await js("create", actor=actor, url=jazz.url, name="reader")
        return await js("load", actor=actor, id=co_id)

    return load


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("restarted", [False, True], ids=["in memory", "in the database"])
async def test_it_delays_no_content_of_others(
    kind: str, restarted: bool, jazz: JazzServer, nodes: Nodes, reader: Callable[[str], Awaitable[Any]]
) -> None:
    """While the stranger is connected and after it left, and if the server has the value only in its database."""
    group, value = await _shared_map(nodes)
    if restarted:
        jazz.stop()
        jazz.start()
    async with stranger(jazz.url) as who:
        await who.send(MESSAGES[kind](who, group.id, value.id))
        await who.sessions(value.id)
        await _check_writes(group, value, 2, nodes)
        assert await reader(value.id) == {"x": -2}
    await _check_writes(group, value, 3, nodes)
    assert await reader(value.id) == {"x": -3}


async def _check_writes(group: Group, value: CoMap, number: int, nodes: Nodes) -> None:
    newcomer = await nodes("newcomer")
    await group.add_member(newcomer.account_id, "writer")
    value.set("x", number)
    for written in (value, group):
        await written.uploaded(timeout=60)
    theirs = await newcomer.load_map(value.id, timeout=60)
    await until(theirs, {"x": number})
    theirs.set("x", -number)
    await newcomer.flush(timeout=60)
    await until(value, {"x": -number})


@needs_open_server
async def test_it_is_handled_when_the_value_arrives(jazz: JazzServer, nodes: Nodes) -> None:
    """An honest client may upload a group before an account of it, which may even come from another client."""
    _, value = await _shared_map(nodes)
    async with stranger(jazz.url) as who, stranger(jazz.url) as other:
        account = account_header(who.agent.agent_id)
        session = f"{account.co_id}_session_z1"
        await who.write(value.id, [trusting([set_key("x", 2)])], session=session)
        assert session not in await who.sessions(value.id)
        await other.send(
            {"action": "content", "id": account.co_id, "priority": 0, "header": dict(account.raw), "new": {}}
        )
        await other.sessions(account.co_id)
        assert session in await who.sessions(value.id)
    assert content(value) == {"x": 1}
