"""What one event costs a whole term: work is counted among many stacks, never timed. Jazz and the volume are real."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from support.sentinel_fleet import Fleet

from reside.jazz import Credentials, Node
from reside.jazz.server import SyncServer
from reside.sentinel.guard import verifications
from reside.sentinel.guard.repairer import DriftRepairer
from reside.sentinel.store import stacks as storing
from reside.sentinel.term import context, reports
from reside.sentinel.term.reader import Reader
from reside.sentinel.term.reporter import Reporter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio
STACKS = [f"s{number}" for number in range(20)]


class Work:
    """What was done, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[str] = []
        self.reported: list[str] = []
        self.examined: list[str] = []
        self.files: list[str] = []
        self._count(monkeypatch, Reader, "handle", self.read)
        self._count(monkeypatch, Reporter, "_write", self.reported)
        self._count(monkeypatch, DriftRepairer, "_handle", self.examined)
        real: Callable[[Path], object] = storing._read
        monkeypatch.setattr(storing, "_read", lambda path: (self.files.append(path.stem), real(path))[1])

    def clear(self) -> None:
        """Forget it."""
        for each in (self.read, self.reported, self.examined, self.files):
            each.clear()

    def _count(self, monkeypatch: pytest.MonkeyPatch, kind: type, name: str, found: list[str]) -> None:
        real = getattr(kind, name)

        async def counted(self: object, key: str) -> None:
            found.append(key)
            await real(self, key)

        monkeypatch.setattr(kind, name, counted)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setattr(verifications, "_SAVE_AFTER_S", 0.0)
    monkeypatch.setattr(reports, "LIVE_S", 0.0)
    return Work(monkeypatch)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with SyncServer() as server, Node(server.url, Credentials.generate()) as node:
        await node.register("sentinel")
        yield node


async def test_an_event_looks_at_its_stack_only(node: Node, tmp_path: Path, work: Work) -> None:
    fleet = Fleet(node, tmp_path)
    for name in STACKS:
        fleet.declare(name)
    async with fleet.running():
        assert len(fleet.engine.applied) == len(STACKS)
        work.clear()
        fleet.engine.applied.clear()
        fleet.api.calls.clear()

        fleet.show("s3", 7)
        await fleet.settled()
        assert (work.read, set(work.reported), work.examined) == ([], {"s3"}, ["Deployment/s3"])
        assert fleet.api.calls == {}

        work.clear()
        fleet.api.relist()
        await fleet.settled()
        assert (work.read, work.reported, work.examined) == ([], [], [])

        fleet.declare("new")
        await fleet.settled()
        assert (work.read, set(work.reported), fleet.engine.applied) == (["new"], {"new"}, ["new"])
        assert {key.partition("/")[2] for key in work.examined} == {"new"}
        assert fleet.api.calls == {}, "the cache tells that none of its objects exists"
        assert work.files == []

        work.clear()
        fleet.term.examine("co_zother")
        await fleet.settled()
        assert work.read == []
        fleet.term.examine(fleet.account)
        await fleet.settled()
        assert set(work.read) == {*STACKS, "new"}
        assert fleet.engine.applied == ["new"], "all of them are applied already"


async def test_a_restart_reads_each_file_once_and_sends_nothing(node: Node, tmp_path: Path, work: Work) -> None:
    fleet = Fleet(node, tmp_path)
    for name in STACKS:
        fleet.declare(name)
    async with fleet.running():
        pass
    work.clear()
    again = Fleet(node, tmp_path, data=fleet.data, live=fleet.api.live)
    async with again.running():
        assert sorted(work.files) == sorted(STACKS)
        assert sorted(work.read) == sorted(STACKS)
        assert again.engine.applied == []
        assert again.api.calls == {}


async def test_stacks_that_are_readable_at_once_are_read_in_turns(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, loop = Fleet(node, tmp_path), asyncio.get_running_loop()
    round_, read_in = 0, list[int]()
    real: Callable[..., object] = context.read_stack
    monkeypatch.setattr(context, "read_stack", lambda *given: (read_in.append(round_), real(*given))[1])

    def next_round() -> None:
        nonlocal round_, ticking
        round_ += 1
        ticking = loop.call_soon(next_round)

    for name in STACKS:
        fleet.declare(name)
    async with fleet.running():
        read_in.clear()
        ticking = loop.call_soon(next_round)
        fleet.term.examine(fleet.account)
        await fleet.settled()
        ticking.cancel()
        assert len(read_in) == len(STACKS)
        assert len(set(read_in)) == len(STACKS), "the loop looks at its timers and sockets in between"
