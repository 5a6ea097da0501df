"""A malformed session in a message from the server is ignored alone; everything else in the message is accepted."""

from __future__ import annotations

from typing import Any

import pytest
from support.jazz_controlled_nodes import DetachedNode, exchange_during, registered
from unit.jazz.messages import get_to_know, public_map, whole_of

pytestmark = pytest.mark.anyio

STRANGER = "sealer_z1/signer_z1"
MEMBER = "the id of an account with a role"
GOOD = {"changes": "[]", "madeAt": 1, "privacy": "trusting"}

SESSIONS: dict[str, tuple[str, Any, str]] = {
    "no author": ("me", {"after": 0, "newTransactions": [GOOD], "lastSignature": "x"}, "session is malformed"),
    "a long id": (
        f"{STRANGER}_session_z{'1' * 300}",
        {"after": 0, "newTransactions": [GOOD], "lastSignature": "x"},
        "session is malformed",
    ),
    "a lone surrogate": (
        f"{STRANGER}_session_\ud800",
        {"after": 0, "newTransactions": [GOOD], "lastSignature": "x"},
        "session is malformed",
    ),
    "no batch": (f"{STRANGER}_session_z1", None, "session is malformed"),
    "a negative place": (
        f"{STRANGER}_session_z1",
        {"after": -1, "newTransactions": [GOOD], "lastSignature": "x"},
        "session is malformed",
    ),
    "a time beyond 64 bits": (
        f"{STRANGER}_session_z1",
        {"after": 0, "newTransactions": [GOOD | {"madeAt": 2**64}], "lastSignature": "x"},
        "madeAt",
    ),
    "a transaction that is a text": (
        f"{STRANGER}_session_z1",
        {"after": 0, "newTransactions": ["x"], "lastSignature": "x"},
        "not an object",
    ),
    "a wrong signature": (
        f"{MEMBER}_session_z1",
        {"after": 0, "newTransactions": [GOOD], "lastSignature": "x"},
        "signature",
    ),
}


@pytest.mark.parametrize("kind", SESSIONS)
async def test_a_malformed_session_is_ignored_alone(kind: str) -> None:
    session, batch, reason = SESSIONS[kind]
    hub = DetachedNode()
    writer, reader = await registered(hub, "writer"), DetachedNode()
    value = await public_map(writer, hub, {"x": 1})
    await get_to_know(reader, hub, writer)
    await exchange_during(hub, reader, reader.load_group(value.group.id))
    session = session.replace(MEMBER, writer.account_id)
    message = whole_of(hub, value)
    message["new"] = {session: batch} | message["new"]
    reader.give(message)
    found = await reader.load_map(value.id, timeout=30)
    assert found.as_dict() == {"x": 1}
    assert [reason in (why or "") for theirs, _, why in found.refusals() if theirs == session] == [True]
    assert reader.statistics.rejected == 1
    known = [item for item in reader.take() if item["action"] == "known" and item["id"] == value.id]
    assert known[-1]["sessions"].keys() == message["new"].keys(), "the server is told not to send it again"


async def test_a_header_that_is_refused_delays_nobody() -> None:
    """The account of an author is refused: its transactions don't count, and the value is complete without them."""
    hub = DetachedNode()
    owner, author, reader = await registered(hub, "owner"), await registered(hub, "author"), DetachedNode()
    value = await public_map(owner, hub, {"x": 1})
    await get_to_know(reader, hub, owner)
    await exchange_during(hub, reader, reader.load_group(value.group.id))
    account = hub._host.store.core(author.account_id)
    message = whole_of(hub, value)
    session = f"{author.account_id}_session_z1"
    message["new"][session] = {"after": 0, "newTransactions": [GOOD], "lastSignature": "x"}
    reader.give(message)
    assert account.header is not None
    refused = dict(account.header.raw) | {"uniqueness": "another"}
    reader.give({"action": "content", "id": author.account_id, "priority": 0, "header": refused, "new": {}})
    assert (await reader.load_map(value.id, timeout=30)).as_dict() == {"x": 1}
