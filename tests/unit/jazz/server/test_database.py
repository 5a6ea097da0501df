"""The values of a server in its database file: what one process stored, the next one serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from interop.strangers.poison import POISON
from interop.strangers.stranger import trusting
from unit.jazz.server.lines import Attached, Line, stranger

from reside.jazz import SqliteStore
from reside.jazz.server.hub import Hub
from reside.jazz.server.values import Values
from reside.jazz.wire.header import account_header

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

LENGTH = 600


class Process:
    """A server process with a database file; it saves after each message."""

    def __init__(self, file: Path) -> None:
        self.values = Values(SqliteStore(file))
        self.values.open()
        self.hub = Hub(self.values)
        self.line = Line(self.hub)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Generator[Process]]:
    """Yield a server, the next one at each iteration; the one before is closed."""

    def made() -> Generator[Process]:
        while True:
            process = Process(tmp_path / "jazz.sqlite")
            try:
                yield process
            finally:
                process.values.close()

    started = made()
    yield started
    started.close()


@pytest.mark.parametrize("cyclic", [False, True])
def test_a_long_chain_of_authors_is_loaded(cyclic: bool, processes: Generator[Process]) -> None:
    """Anyone can write to any account, so the accounts that one needs form chains and cycles of any length."""
    first = next(processes)
    people = [stranger() for _ in range(LENGTH)]
    headers = [account_header(who.author) for who in people]
    for header in headers:
        first.line.give({"action": "content", "id": header.co_id, "header": dict(header.raw), "priority": 0, "new": {}})
    for number, header in enumerate(headers):
        if cyclic or number + 1 < LENGTH:
            author = (number + 1) % LENGTH
            session = f"{headers[author].co_id}_session_z1"
            first.line.give(people[author].content(header.co_id, [trusting()], session=session))
    second = next(processes)
    answers = second.line.load(headers[0].co_id)
    assert [item["id"] for item in answers].count(headers[0].co_id) == 1
    assert {item["id"] for item in answers} == {header.co_id for header in headers}
    assert sum(len(item["new"]) for item in answers) == (LENGTH if cyclic else LENGTH - 1)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", POISON)
async def test_a_session_of_any_form_is_read_from_the_file(kind: str, processes: Generator[Process]) -> None:
    first = next(processes)
    attached = Attached(first.hub)
    writer = await attached.node("writer")
    value = writer.create_group().create_map({"x": 1})
    await attached.during(writer.flush())
    who = stranger()
    session, transactions = POISON[kind](who)
    first.line.give(who.content(value.id, transactions, session=session))
    expected = Line(first.hub).load(value.id)
    assert next(processes).line.load(value.id) == expected
    assert session in expected[-1]["new"]


@pytest.mark.anyio
async def test_a_deletion_by_an_inherited_admin_stays_valid(processes: Generator[Process]) -> None:
    first = next(processes)
    attached = Attached(first.hub)
    writer = await attached.node("writer")
    parent, group = writer.create_group(), writer.create_group()
    await attached.during(group.extend(parent))
    other = await attached.node("other")
    await attached.during(parent.add_member(other.account_id, "admin"))
    value = group.create_map({"x": 1})
    await attached.during(writer.flush())
    theirs = await attached.during(other.load_map(value.id))
    theirs.destroy()
    await attached.during(other.flush())
    second = next(processes)
    (message,) = [item for item in second.line.load(value.id) if item["id"] == value.id]
    assert all(session.endswith("$") for session in message["new"])
    assert len(message["new"]) == 1
