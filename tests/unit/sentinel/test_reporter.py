"""Reports of stacks in a real Jazz node: their history is dropped from time to time, and times alone can wait."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from reside.jazz import CoMap, Credentials, Node
from reside.jazz.server import SyncServer
from reside.model.stacks import DesiredStack, StackReport
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.pods import PodCache
from reside.sentinel.term import reporter
from reside.sentinel.term.reporter import REPLACE_AFTER, Reporter
from reside.sentinel.term.reports import says_more

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

OBJECT = "Deployment/worker-1"


class Guard:
    """The parts of a guard that a reporter uses."""

    def __init__(self) -> None:
        self.cache, self.pods = ObjectCache(), PodCache()
        self.store = SimpleNamespace(stacks={}, holder=lambda _key: None)
        self.repairer = SimpleNamespace(problems={}, listen=lambda _listener: lambda: None)


class Term:
    """A reporter on a real node; `show` makes the API server show another Deployment."""

    def __init__(self, node: Node) -> None:
        readers = node.create_group()
        self.guard, self.reports = Guard(), readers.create_map()
        self.data = SimpleNamespace(reports=self.reports, readers=readers)
        self.node, self.replica = node, SimpleNamespace(node=node)
        self.reporter = Reporter(self)  # type: ignore[arg-type]
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worker-1"}}
        self.reporter.set_desired(DesiredStack("worker", "co_zOwner", (deployment,)))

    async def show(self, ready: int, time: str = "1") -> CoMap:
        """Report a live Deployment with so many ready pods, and return the present report map."""
        conditions = [{"type": "Available", "status": "True", "lastUpdateTime": time}]
        status = {"readyReplicas": ready, "conditions": conditions}
        live = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worker-1"}, "status": status}
        self.guard.cache.note("MODIFIED", live)
        await self.reporter._write("worker")
        return await self.node.load_map(str(self.reports["worker"]))


@pytest.fixture
async def term() -> AsyncIterator[Term]:
    async with SyncServer() as server, Node(server.url, Credentials.generate()) as node:
        await node.register("sentinel")
        yield Term(node)


def seen(report: CoMap) -> Any:
    live = StackReport.parse(report.as_dict()).objects[OBJECT].live
    return (live or {})["status"]


async def test_a_report_gets_a_new_map_after_some_changes_and_the_old_one_is_deleted(term: Term) -> None:
    first = await term.show(0)
    for number in range(1, REPLACE_AFTER):
        assert await term.show(number) is first
    assert first.transaction_count == REPLACE_AFTER
    second = await term.show(99)
    assert second is not first
    assert first.deleted
    assert second.transaction_count == 1
    assert seen(second)["readyReplicas"] == 99


async def test_what_a_process_that_died_did_not_delete_is_deleted_with_the_next_map(term: Term) -> None:
    left = await term.show(0)
    term.reports.set("worker", term.data.readers.create_map({}).id)  # the process died here
    for number in range(REPLACE_AFTER + 1):
        await term.show(number)
    assert left.deleted


async def test_a_removed_stack_leaves_no_report_map(term: Term) -> None:
    report = await term.show(1)
    term.reporter.remove("worker")
    await term.reporter._write("worker")
    assert "worker" not in term.reports
    assert report.deleted


async def test_a_change_of_times_alone_waits_and_any_other_change_is_written_at_once(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await term.show(1, time="1")
    await term.show(2, time="1")
    count = report.transaction_count
    await term.show(2, time="2")
    assert report.transaction_count == count
    assert term.reporter.queue.statistics().waiting == 1, "it is written later"
    await term.show(3, time="3")
    assert seen(report)["readyReplicas"] == 3
    monkeypatch.setattr(reporter, "QUIET_S", 0.0)
    await term.show(3, time="4")
    assert seen(report)["conditions"][0]["lastUpdateTime"] == "4"


@pytest.mark.parametrize(
    ("present", "desired", "expected"),
    [
        ({"live": {"status": {"lastUpdateTime": "1"}}}, {"live": {"status": {"lastUpdateTime": "2"}}}, False),
        ({"live": {"items": [{"lastProbeTime": 1}]}}, {"live": {"items": [{}]}}, False),
        ({"problem": None}, {"problem": "CrashLoopBackOff: exit code 1"}, True),
        ({"live": {"metadata": {"generation": 1}}}, {"live": {"metadata": {"generation": 2}}}, True),
        (None, {"status": "updated"}, True),
    ],
)
def test_only_times_say_nothing(present: Any, desired: Any, expected: bool) -> None:
    assert says_more(present, desired) is expected
