"""The sync server refuses malformed messages one by one: none of them stops it, or harms another client.

cojson's native part aborts the process when a key does not decode, so such messages must not reach it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from interop.strangers.stranger import Stranger, set_key, stranger, trusting
from support.jazz_nodes import content, until

from reside.jazz.wire.encoding import b58encode
from reside.jazz.wire.header import parse_header

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.jazz_nodes import Nodes
    from support.jazz_server import JazzServer

pytestmark = pytest.mark.anyio

ABSENT = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
SHORT = b58encode(b"\x01" * 31)
NO_POINT = b58encode(b"\x02" + b"\x00" * 31)


def batch(who: Stranger, co_id: str, session: str | None = None, **members: Any) -> dict[str, Any]:
    """Return a content message of one session, with other members in its batch."""
    transactions = [trusting([set_key("x", "forged")])]
    session = who.session() if session is None else session
    items = {"after": 0, "newTransactions": transactions, "lastSignature": who.signature(transactions)}
    return {"action": "content", "id": co_id, "priority": 3, "new": {session: items | members}}


def header(admin: Any, **members: Any) -> dict[str, Any]:
    """Return the header of a group, with another initial admin."""
    return {
        "type": "comap",
        "ruleset": {"type": "group", "initialAdmin": admin},
        "meta": None,
        "createdAt": None,
        "uniqueness": "x",
    } | members


def account(who: Stranger, agent_id: str) -> dict[str, Any]:
    """Return an account of an unusable agent, which has written to itself."""
    raw = header(agent_id, meta={"type": "account"}, uniqueness=None)
    co_id = parse_header(raw).co_id
    return batch(who, co_id, f"{co_id}_session_z1") | {"header": raw}


MESSAGES: dict[str, Callable[[Stranger, str], Any]] = {
    "a number": lambda who, co_id: "5",
    "a text": lambda who, co_id: '"text"',
    "null": lambda who, co_id: "null",
    "a list": lambda who, co_id: "[1]",
    "no JSON": lambda who, co_id: "{",
    "binary": lambda who, co_id: b"\x00\xff",
    "an unknown action": lambda who, co_id: {"action": "explode", "id": co_id},
    "a load of a number": lambda who, co_id: {"action": "load", "id": 5, "header": False, "sessions": {}},
    "a load without sessions": lambda who, co_id: {"action": "load", "id": co_id, "header": False},
    "a load of no id": lambda who, co_id: {"action": "load", "id": "co_z0OIl", "header": False, "sessions": {}},
    "a known state of texts": lambda who, co_id: {
        "action": "known",
        "id": co_id,
        "header": True,
        "sessions": {"x": "many"},
    },
    "a reconcile of nothing": lambda who, co_id: {"action": "reconcile", "id": "x", "values": None},
    "content without sessions": lambda who, co_id: {"action": "content", "id": co_id, "priority": 3},
    "content of a list": lambda who, co_id: {"action": "content", "id": co_id, "priority": 3, "new": [1]},
    "a priority that is a text": lambda who, co_id: batch(who, co_id) | {"priority": "high"},
    "a batch that is null": lambda who, co_id: batch(who, co_id) | {"new": {who.session(): None}},
    "a session of nobody": lambda who, co_id: batch(who, co_id, "me"),
    "an empty session": lambda who, co_id: batch(who, co_id, ""),
    "a session of a prototype": lambda who, co_id: batch(who, co_id, "__proto__"),
    "a session of a signer": lambda who, co_id: batch(who, co_id, f"{who.agent.signer_id}_session_z1"),
    "a session of two sealers": lambda who, co_id: batch(who, co_id, f"sealer_z1/x/{who.agent.signer_id}_session_z1"),
    "a signer with a short key": lambda who, co_id: batch(who, co_id, f"sealer_z1/signer_z{SHORT}_session_z1"),
    "a signer outside of base58": lambda who, co_id: batch(who, co_id, "sealer_z1/signer_z0OIl_session_z1"),
    "a signer that is empty": lambda who, co_id: batch(who, co_id, "sealer_z1/signer_z_session_z1"),
    "a signer that is no point": lambda who, co_id: batch(who, co_id, f"sealer_z1/signer_z{NO_POINT}_session_z1"),
    "a signer of a million characters": lambda who, co_id: batch(
        who, co_id, f"sealer_z1/signer_z{'1' * 1_000_000}_session_z1"
    ),
    "no signature": lambda who, co_id: batch(who, co_id, lastSignature=None),
    "an empty signature": lambda who, co_id: batch(who, co_id, lastSignature=""),
    "a signature outside of base58": lambda who, co_id: batch(who, co_id, lastSignature="signature_z0OIl"),
    "a short signature": lambda who, co_id: batch(who, co_id, lastSignature=f"signature_z{SHORT}"),
    "a signature of another kind": lambda who, co_id: batch(who, co_id, lastSignature=f"hash_z{'1' * 64}"),
    "a negative place": lambda who, co_id: batch(who, co_id, after=-1),
    "a place between": lambda who, co_id: batch(who, co_id, after=0.5),
    "a place far ahead": lambda who, co_id: batch(who, co_id, after=2**53),
    "no transactions": lambda who, co_id: batch(who, co_id, newTransactions=[]),
    "transactions that are a text": lambda who, co_id: batch(who, co_id, newTransactions="many"),
    "transactions that are null": lambda who, co_id: batch(who, co_id, newTransactions=[None]),
    "a transaction of no kind": lambda who, co_id: batch(who, co_id, newTransactions=[{}]),
    "a time as text": lambda who, co_id: batch(who, co_id, newTransactions=[trusting() | {"madeAt": "now"}]),
    "a header that is null": lambda who, co_id: batch(who, ABSENT) | {"header": None},
    "a header that is empty": lambda who, co_id: batch(who, ABSENT) | {"header": {}},
    "a header of another value": lambda who, co_id: batch(who, ABSENT) | {"header": header(who.author)},
    "a group of a number": lambda who, co_id: batch(who, ABSENT) | {"header": header(5)},
    "a group of an unusable agent": lambda who, co_id: batch(who, ABSENT) | {"header": header("sealer_z1/signer_z1")},
    "an account of an unusable agent": lambda who, co_id: account(who, "sealer_z1/signer_z1"),
    "an account of no agent": lambda who, co_id: account(who, "me"),
    "an account of no point": lambda who, co_id: account(who, f"sealer_z1/signer_z{NO_POINT}"),
    "an owner that is none": lambda who, co_id: (
        batch(who, ABSENT) | {"header": header(0, ruleset={"type": "ownedByGroup", "group": "me"})}
    ),
    "an owner that is itself": lambda who, co_id: (
        batch(who, ABSENT) | {"header": header(0, ruleset={"type": "ownedByGroup", "group": ABSENT})}
    ),
    "an unknown ruleset": lambda who, co_id: batch(who, ABSENT) | {"header": header(0, ruleset={"type": "none"})},
    "an unknown type": lambda who, co_id: batch(who, ABSENT) | {"header": header(who.author, type="cojunk")},
    "a branch of nothing": lambda who, co_id: (
        batch(who, ABSENT) | {"header": header(who.author, meta={"source": 5, "branch": 5})}
    ),
    "deep nesting": lambda who, co_id: "[" * 100_000,
}


@pytest.mark.parametrize("kind", MESSAGES)
async def test_a_malformed_message_stops_nobody(kind: str, jazz: JazzServer, nodes: Nodes) -> None:
    owner = await nodes("owner")
    group = owner.create_group()
    await group.add_member("everyone", "reader")
    value = group.create_map({"x": 1})
    await owner.flush()
    async with stranger(jazz.url) as who:
        await who.send({"action": "load", "id": value.id, "header": False, "sessions": {}})
        message = MESSAGES[kind](who, value.id)
        await who.send(message if isinstance(message, str | bytes) else json.dumps(message))
        value.set("x", 2)
        await owner.flush()
        reader = await nodes("reader")
        assert content(await reader.load_map(value.id)) == {"x": 2}
        value.set("x", 3)
        await until(await reader.load_map(value.id), {"x": 3})
