"""The server's protocol: which messages it sends for which it receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from interop.strangers.stranger import set_key, trusting
from support.jazz_nodes import content
from unit.jazz.server.lines import Attached, Clock, Line, stranger

from reside.jazz.server.hub import Hub
from reside.jazz.server.values import Values
from reside.jazz.wire.header import account_header

if TYPE_CHECKING:
    from support.jazz_controlled_nodes import DetachedNode

    from reside.jazz import CoMap

ABSENT = "co_zPfEHWFVK3AzWcsjBoGXmjTEAnLp"
NOTHING: dict[str, Any] = {"header": False, "sessions": {}}


def _actions(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["action"], message["id"]) for message in messages]


@pytest.fixture
async def writer(attached: Attached) -> DetachedNode:
    """Return a registered node."""
    return await attached.node("writer")


@pytest.fixture
async def value(writer: DetachedNode, attached: Attached) -> CoMap:
    """Return a map that everyone may read, and that the server has."""
    group = writer.create_group()
    await attached.during(group.add_member("everyone", "reader"))
    made = group.create_map({"x": 1})
    await attached.during(writer.flush())
    return made


@pytest.mark.anyio
async def test_two_nodes_see_what_the_other_writes(attached: Attached, writer: DetachedNode) -> None:
    reader = await attached.node("reader")
    group = writer.create_group()
    await attached.during(group.add_member(reader.account_id, "writer"))
    mine = group.create_map({"x": 1})
    await attached.during(writer.flush())
    theirs = await attached.during(reader.load_map(mine.id))
    theirs.set("y", 2)
    await attached.during(reader.flush())
    assert content(mine) == {"x": 1, "y": 2}


@pytest.mark.anyio
async def test_a_load_is_answered_with_content_after_its_dependencies(
    line: Line, writer: DetachedNode, value: CoMap
) -> None:
    answer = line.load(value.id)
    assert _actions(answer) == [("content", co_id) for co_id in (writer.account_id, value.group.id, value.id)]
    assert all("header" in message for message in answer)
    assert "expectContentUntil" not in answer[-1]


@pytest.mark.anyio
async def test_dependencies_are_sent_once_on_a_connection(line: Line, value: CoMap) -> None:
    line.load(value.group.id)
    assert _actions(line.load(value.id)) == [("content", value.id)]


@pytest.mark.anyio
async def test_each_load_of_one_that_has_nothing_is_answered_with_content(line: Line, value: CoMap) -> None:
    """A client that catches up asks for content that it has, and waits for it.

    It waited for ever if it did so twice at once, or if its acknowledgement of earlier content came after the `load`.
    """
    (message,) = [item for item in line.load(value.id) if item["id"] == value.id]
    counts = {session: len(batch["newTransactions"]) for session, batch in message["new"].items()}
    whole = {"action": "load", "id": value.id, **NOTHING}
    line.give(whole, whole, {"action": "known", "id": value.id, "header": True, "sessions": counts})
    assert _actions(line.take()) == [("content", value.id)] * 2


@pytest.mark.anyio
async def test_a_load_of_one_that_has_all_is_answered_with_the_known_state(line: Line, value: CoMap) -> None:
    (message,) = [item for item in line.load(value.id) if item["id"] == value.id]
    counts = {session: len(batch["newTransactions"]) for session, batch in message["new"].items()}
    line.give({"action": "load", "id": value.id, "header": True, "sessions": counts})
    assert line.take() == [{"action": "known", "id": value.id, "header": True, "sessions": counts}]


def test_an_absent_value_is_reported_and_sent_when_it_arrives(line: Line, other: Line) -> None:
    who = stranger()
    header = account_header(who.author)
    assert line.load(header.co_id) == [{"action": "known", "id": header.co_id, **NOTHING}]
    other.give({"action": "content", "id": header.co_id, "priority": 0, "header": dict(header.raw), "new": {}})
    assert _actions(other.take()) == [("known", header.co_id)]
    assert line.take() == [
        {"action": "content", "id": header.co_id, "header": dict(header.raw), "priority": 0, "new": {}}
    ]


@pytest.mark.anyio
async def test_content_is_acknowledged_and_relayed_to_all_that_named_the_value(
    server: Hub, line: Line, other: Line, value: CoMap
) -> None:
    unconcerned = Line(server)
    line.load(value.id)
    other.give({"action": "known", "id": value.id, **NOTHING})
    other.take()
    who = stranger()
    session = who.session()
    sender = Line(server)
    sender.give(who.content(value.id, [trusting([set_key("x", 2)])], session=session))
    assert sender.take()[0]["sessions"][session] == 1
    for receiver in (line, other):
        (message,) = receiver.take()
        assert (message["action"], list(message["new"])) == ("content", [session])
    assert unconcerned.take() == []


@pytest.mark.anyio
async def test_nothing_is_sent_twice(line: Line, writer: DetachedNode, value: CoMap, attached: Attached) -> None:
    line.load(value.id)
    value.set("x", 2)
    await attached.during(writer.flush())
    (message,) = line.take()
    (batch,) = message["new"].values()
    assert (batch["after"], len(batch["newTransactions"])) == (1, 1)
    line.give({"action": "known", "id": value.id, "header": True, "sessions": {writer._host.writer.session: 2}})
    assert line.take() == []


@pytest.mark.anyio
async def test_changes_while_a_client_does_not_read_are_one_message(
    line: Line, writer: DetachedNode, value: CoMap, attached: Attached
) -> None:
    line.load(value.id)
    for number in range(20):
        value.set("x", number)
        await attached.during(writer.flush())
    assert len(line.take()) == 1


@pytest.mark.anyio
async def test_a_correction_replaces_what_the_server_assumed(line: Line, value: CoMap) -> None:
    sent = line.load(value.id)[-1]
    line.give({"action": "known", "id": value.id, "isCorrection": True, **NOTHING})
    assert line.take() == [sent]


def test_content_of_an_unknown_value_without_header_is_corrected(line: Line) -> None:
    line.give(stranger().content(ABSENT, [trusting()]))
    assert line.take() == [{"action": "known", "id": ABSENT, "isCorrection": True, **NOTHING}]


@pytest.mark.anyio
async def test_a_gap_is_corrected_and_costs_only_its_session(line: Line, value: CoMap) -> None:
    who = stranger()
    good, gap = who.session(), who.session()
    message = who.content(value.id, [trusting()], session=good)
    message["new"][gap] = message["new"][good] | {"after": 5}
    line.give(message)
    correction = next(item for item in line.take() if item["action"] == "known")
    assert correction["isCorrection"] is True
    assert good in correction["sessions"]
    assert gap not in correction["sessions"]


@pytest.mark.anyio
async def test_a_large_value_is_announced(line: Line, writer: DetachedNode, attached: Attached) -> None:
    group = writer.create_group()
    await attached.during(group.add_member("everyone", "reader"))
    file = group.create_file(bytes(500_000))
    await attached.during(writer.flush())
    pieces = [message for message in line.load(file.id) if message["id"] == file.id]
    session = writer._host.writer.session
    assert len(pieces) > 3
    assert pieces[0]["expectContentUntil"] == {
        session: sum(len(item["new"][session]["newTransactions"]) for item in pieces)
    }
    assert all("expectContentUntil" not in item and "header" not in item for item in pieces[1:])


@pytest.mark.anyio
async def test_a_deleted_value_consists_of_its_deletion(
    line: Line, writer: DetachedNode, value: CoMap, attached: Attached
) -> None:
    stale = next(iter(line.load(value.id)[-1]["new"]))
    value.destroy()
    await attached.during(writer.flush())
    (message,) = line.take()
    assert all(session.endswith("$") for session in message["new"])
    late = stranger()
    line.give(late.content(value.id, [trusting()], session=late.session()))
    (known,) = line.take()
    assert len(known["sessions"]) == 2, "it names what was refused, so that it is not sent again"
    assert stale not in line.sessions(value.id)


@pytest.mark.anyio
async def test_a_connection_that_ended_costs_nothing(server: Hub, line: Line, value: CoMap) -> None:
    line.load(value.id)
    line.end()
    assert line.peer not in server._followers[value.id]
    line.load(ABSENT)


def test_a_connection_that_names_too_many_values_is_refused() -> None:
    line = Line(Hub(Values(), clock=Clock(), max_records=3))
    sessions = {f"{stranger().session()}": 1 for _ in range(3)}
    line.give({"action": "known", "id": ABSENT, "header": True, "sessions": sessions})
    assert line.peer.refusal == "the connection names more than 3 values and sessions"


def test_counts_of_texts_that_are_no_sessions_are_not_kept(line: Line) -> None:
    line.give({"action": "load", "id": ABSENT, "header": True, "sessions": {"x" * 1000: 1}})
    assert line.peer.states[ABSENT].acknowledged == {}
