"""Content that depends on unknown values waits, within bounds of number, size and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from interop.strangers.stranger import Stranger, set_key, trusting
from unit.jazz.server.lines import Attached, Clock, Line, stranger

from reside.jazz.server import holding
from reside.jazz.server.hub import HOLD_S
from reside.jazz.wire.header import account_header, parse_header

if TYPE_CHECKING:
    from reside.jazz import CoMap

pytestmark = pytest.mark.anyio


def _account(who: Stranger) -> dict[str, Any]:
    header = account_header(who.author)
    return {"action": "content", "id": header.co_id, "priority": 0, "header": dict(header.raw), "new": {}}


@pytest.fixture
async def value(attached: Attached) -> CoMap:
    """Return a map that the server has."""
    writer = await attached.node("writer")
    made = writer.create_group().create_map({"x": 1})
    await attached.during(writer.flush())
    return made


async def test_a_session_waits_for_its_author_whom_the_sender_is_asked_for(
    line: Line, other: Line, value: CoMap
) -> None:
    who = stranger()
    account = _account(who)
    session = f"{account['id']}_session_z1"
    transactions = [trusting([set_key("x", number)]) for number in range(2)]
    line.give(who.content(value.id, transactions[:1], session=session))
    (asked, *_rest) = line.take()
    assert asked == {"action": "load", "id": account["id"], "header": False, "sessions": {}}
    second = {"after": 1, "newTransactions": transactions[1:], "lastSignature": who.signature(transactions)}
    line.give({"action": "content", "id": value.id, "priority": 3, "new": {session: second}})
    assert [item for item in line.take() if item.get("isCorrection")] == []
    other.give(account)
    acknowledged = [item for item in line.take() if item["action"] == "known"][-1]
    assert acknowledged["sessions"][session] == 2


async def test_other_sessions_of_the_message_do_not_wait(line: Line, value: CoMap) -> None:
    who = stranger()
    waiting, ready = f"{_account(who)['id']}_session_z1", who.session()
    message = who.content(value.id, [trusting()], session=waiting)
    message["new"][ready] = message["new"][waiting]
    line.give(message)
    assert line.sessions(value.id) >= {ready}
    assert waiting not in line.sessions(value.id)


async def test_a_header_waits_for_its_owner_with_all_that_follows(line: Line) -> None:
    who = stranger()
    owner = _account(who)
    raw = {
        "type": "comap",
        "ruleset": {"type": "ownedByGroup", "group": owner["id"]},
        "meta": None,
        "createdAt": None,
        "uniqueness": "x",
    }
    co_id, first, second = parse_header(raw).co_id, who.session(), who.session()
    line.give(who.content(co_id, [trusting()], session=first) | {"header": raw})
    line.give(who.content(co_id, [trusting()], session=second))
    assert [item["action"] for item in line.take()] == ["load"]
    line.give(owner)
    assert line.sessions(co_id) == {first, second}


async def test_what_waits_too_long_is_dropped(line: Line, clock: Clock, value: CoMap) -> None:
    who = stranger()
    account = _account(who)
    session = f"{account['id']}_session_z1"
    line.give(who.content(value.id, [trusting()], session=session))
    clock.now = HOLD_S
    line.load(value.id)
    assert len(line.peer.held) == 0
    line.give(account)
    assert session not in line.sessions(value.id)


async def test_what_waits_ends_with_its_connection(line: Line, other: Line, value: CoMap) -> None:
    who = stranger()
    account = _account(who)
    session = f"{account['id']}_session_z1"
    line.give(who.content(value.id, [trusting()], session=session))
    line.end()
    other.give(account)
    assert session not in other.sessions(value.id)


@pytest.mark.parametrize(("bound", "limit"), [("MAX_PARTS", 2), ("MAX_CHARACTERS", 2_000), ("MAX_UNKNOWN", 2)])
async def test_what_waits_is_bounded(
    bound: str, limit: int, line: Line, value: CoMap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holding, bound, limit)
    for _ in range(5):
        who = stranger()
        line.give(who.content(value.id, [trusting("x" * 200)], session=f"{_account(who)['id']}_session_z1"))
    assert 0 < len(line.peer.held) < 5


@pytest.mark.parametrize("key", ["co_zé0O", "parent_", "parent_co_z0"])
async def test_a_member_that_cannot_exist_is_refused(key: str, line: Line, value: CoMap) -> None:
    who = stranger()
    session = who.session()
    line.give(who.content(value.group.id, [trusting([set_key(key, "reader")])], session=session))
    assert len(line.peer.held) == 0
    assert session not in line.sessions(value.group.id)
