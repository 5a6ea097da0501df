"""Malformed and hostile messages cost nobody but their sender, and what can't be used by clients is not stored."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from interop.strangers.poison import POISON
from interop.strangers.stranger import set_key, trusting
from interop.strangers.test_server_survival import MESSAGES
from interop.strangers.test_unreadable_changes import UNREADABLE
from unit.jazz.server.lines import Attached, Line, stranger

from reside.jazz.wire.header import parse_header

if TYPE_CHECKING:
    from support.jazz_controlled_nodes import DetachedNode

    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio


@pytest.fixture
async def value(attached: Attached) -> CoMap:
    """Return a map that the server has."""
    writer: DetachedNode = await attached.node("writer")
    made = writer.create_group().create_map({"x": 1})
    await attached.during(writer.flush())
    return made


MALFORMED = [kind for kind in MESSAGES if kind not in ("binary", "a priority that is a text")]
"""The state machine reads text only, and ignores the priority of others."""


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_malformed_message_changes_nothing(kind: str, line: Line, other: Line, value: CoMap) -> None:
    before = other.load(value.id)
    who = stranger()
    message = MESSAGES[kind](who, value.id)
    line.give(message if isinstance(message, str) else json.dumps(message))
    line.take()
    assert other.take() == []
    assert line.sessions(value.id) == {session for item in before if item["id"] == value.id for session in item["new"]}


@pytest.mark.parametrize("kind", POISON)
async def test_a_signed_session_of_any_form_is_relayed(kind: str, line: Line, value: CoMap) -> None:
    who = stranger()
    session, transactions = POISON[kind](who)
    line.give(who.content(value.id, transactions, session=session))
    assert session in line.sessions(value.id)


@pytest.mark.parametrize("kind", UNREADABLE)
async def test_a_change_that_javascript_cannot_read_is_refused_in_groups_only(
    kind: str, line: Line, value: CoMap
) -> None:
    who = stranger()
    session = who.session()
    for co_id in (value.group.id, value.id):
        line.give(who.content(co_id, [trusting(UNREADABLE[kind])], session=session))
    assert session not in line.sessions(value.group.id)
    assert session in line.sessions(value.id)


@pytest.mark.parametrize("changes", ["{}", "[" * 2000 + "]" * 2000, "5"])
async def test_changes_of_a_group_that_are_no_list_or_too_deep_are_refused(
    changes: str, line: Line, value: CoMap
) -> None:
    who = stranger()
    session = who.session()
    line.give(who.content(value.group.id, [trusting(changes)], session=session))
    assert session not in line.sessions(value.group.id)


async def test_a_forged_batch_does_not_stop_its_session(line: Line, other: Line, value: CoMap) -> None:
    """Anyone can send a wrong signature under the name of another's session."""
    who = stranger()
    session = who.session()
    message = who.content(value.id, [trusting([set_key("x", 2)])], session=session)
    forged = json.loads(json.dumps(message))
    forged["new"][session]["lastSignature"] = who.signature([trusting()])
    line.give(forged)
    assert session not in line.sessions(value.id)
    other.give(message)
    assert session in line.sessions(value.id)


async def test_a_delete_session_has_one_transaction(line: Line, value: CoMap) -> None:
    who = stranger()
    session = f"{who.author}_session_d1$"
    line.give(who.content(value.id, [trusting(), trusting()], session=session))
    assert session not in line.sessions(value.id)


@pytest.mark.parametrize("admin", ["me", "sealer_z1/signer_z1", f"sealer_z1/signer_z{'1' * 32}"])
async def test_a_group_of_an_unusable_admin_is_refused(admin: str, line: Line) -> None:
    raw: dict[str, Any] = {
        "type": "comap",
        "ruleset": {"type": "group", "initialAdmin": admin},
        "meta": None,
        "createdAt": None,
        "uniqueness": "x",
    }
    co_id = parse_header(raw).co_id
    line.give({"action": "content", "id": co_id, "priority": 0, "header": raw, "new": {}})
    assert line.load(co_id) == [{"action": "known", "id": co_id, "header": False, "sessions": {}}]
