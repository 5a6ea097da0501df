"""Reports of stacks in a real Jazz node: their history is dropped from time to time, and times alone can wait."""

from __future__ import annotations

import asyncio
import gc
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from support.eventually import eventually

from reside.jazz import CoMap, Credentials, Node
from reside.jazz.server import SyncServer
from reside.model.constants import STACK_LABEL
from reside.model.kinds import KINDS
from reside.model.reports import StackReport
from reside.model.sentinel_data import live_map
from reside.model.stacks import DesiredStack
from reside.replica.declaration import STRICT_WRITES
from reside.sentinel.guard.cache import ObjectCache
from reside.sentinel.guard.pods import PodCache
from reside.sentinel.guard.troubles import Troubles
from reside.sentinel.store.stacks import StoredStack
from reside.sentinel.term import reporter, reports
from reside.sentinel.term.live_maps import REPLACE_AFTER, load, named
from reside.sentinel.term.reporter import Reporter
from reside.sentinel.term.reports import says_more

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

OBJECT = "Deployment/worker-1"
UNSEEN = {"state": "in-progress", "reason": "the controller has not seen it yet"}


class Guard:
    """The parts of a guard that a reporter uses."""

    def __init__(self) -> None:
        self.cache, self.pods, self.troubles = ObjectCache(), PodCache(), Troubles()
        self.store = SimpleNamespace(stacks={}, holder=lambda _key: None)
        self.repairer = SimpleNamespace(
            problems={}, findings_of=lambda _: (), reverted_of=lambda _: (), listen=lambda _listener: lambda: None
        )


class Term:
    """A reporter on a real node; `show` makes the API server show another Deployment."""

    def __init__(self, node: Node) -> None:
        readers = node.create_group()
        self.guard, self.reports = Guard(), readers.create_map()
        self.live = {kind.kind: node.create_group() for kind in KINDS}
        self.data = SimpleNamespace(reports=self.reports, readers=readers, live=self.live)
        self.node, self.replica = node, SimpleNamespace(node=node)
        self.reporter = Reporter(self)  # type: ignore[arg-type]
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worker-1"}}
        self.reporter.set_desired(DesiredStack("worker", "co_zOwner", (deployment,)))

    def declarer(self, _stack: str) -> str:
        """Return who declared a stack, as the context of a term does."""
        return "co_zOwner"

    async def show(self, ready: int, time: str = "1") -> CoMap:
        """Report a live Deployment with so many ready pods, and return the present map of what is live."""
        conditions = [{"type": "Available", "status": "True", "lastUpdateTime": time}]
        status = {"readyReplicas": ready, "conditions": conditions}
        live = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "worker-1"}, "status": status}
        self.guard.cache.note("MODIFIED", live)
        await self.reporter._write("worker")
        return await self.live_map()

    async def report_of(self, ready: int) -> tuple[CoMap, CoMap]:
        """Report a live Deployment, and return both maps."""
        live = await self.show(ready)
        return await self.report(), live

    async def report(self) -> CoMap:
        """Return the present report map."""
        return await self.node.load_map(str(self.reports["worker"]))

    async def live_map(self) -> CoMap:
        """Return the present map of what is live of Deployments."""
        return await self.node.load_map((await self.report())[live_map("Deployment")])


@pytest.fixture
async def server() -> AsyncIterator[SyncServer]:
    async with SyncServer() as server:
        yield server


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch, server: SyncServer) -> AsyncIterator[Term]:
    monkeypatch.setattr(reports, "LIVE_S", 0.0)
    async with Node(server.url, Credentials.generate(), policy=STRICT_WRITES) as node:
        await node.register("sentinel")
        yield Term(node)


async def evict(term: Term) -> None:
    """Evict what is not in use, as a node with very many values does."""
    await term.node.flush()
    gc.collect()
    term.node._host.objects.release()
    term.node._runtime._evict()


def seen(live: CoMap) -> Any:
    return live[OBJECT]["status"]


async def test_what_is_live_gets_a_new_map_after_some_changes_and_the_old_one_is_deleted(term: Term) -> None:
    first = await term.show(0)
    for number in range(1, REPLACE_AFTER):
        assert await term.show(number) is first
    assert first.transaction_count == REPLACE_AFTER
    second = await term.show(99)
    assert second is not first
    assert first.deleted
    assert second.transaction_count == 1
    assert second.group.id == term.live["Deployment"].id
    assert seen(second)["readyReplicas"] == 99
    report = await term.report()
    assert (report.transaction_count, report.group.id) == (2, term.data.readers.id), "created, and one new name"


async def test_a_report_gets_a_new_map_after_some_changes_and_keeps_what_is_live(term: Term) -> None:
    live, first = await term.show(0), await term.report()
    for number in range(REPLACE_AFTER):
        term.guard.repairer.problems[OBJECT] = f"problem {number}"
        assert await term.show(0) is live
    second = await term.report()
    assert first.deleted
    assert second[OBJECT] == UNSEEN | {"status": "error", "error": f"problem {REPLACE_AFTER - 1}"}
    assert second.transaction_count == 1
    assert not live.deleted


async def test_a_report_of_an_earlier_release_is_replaced_because_its_log_shows_what_is_live(term: Term) -> None:
    before = term.data.readers.create_map(
        {OBJECT: {"status": "updated", "live": {"kind": "Deployment"}, "error": None}}
    )
    term.reports.set("worker", before.id)
    live = await term.show(7)
    assert before.deleted
    assert (await term.report())[OBJECT] == UNSEEN | {"status": "requested", "error": None}
    assert seen(live)["readyReplicas"] == 7


async def test_the_map_of_a_kind_of_which_nothing_is_live_any_more_is_deleted(term: Term) -> None:
    live = await term.show(1)
    deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "worker-1"}}
    term.guard.cache.note("DELETED", deployment)
    await term.reporter._write("worker")
    assert live_map("Deployment") not in await term.report()
    assert live.deleted


async def test_what_a_process_that_died_did_not_delete_is_deleted_with_the_next_map(term: Term) -> None:
    left, live = await term.report_of(0)
    members = {member: value for member, value in left.as_dict().items() if "." not in member}
    term.reports.set("worker", term.data.readers.create_map(members).id)  # the process died here
    for number in range(REPLACE_AFTER + 1):
        await term.show(number)
    assert left.deleted
    assert live.deleted


async def test_reports_are_evicted_and_loaded_again_for_their_next_change(term: Term) -> None:
    """The Sentinel writes six maps for each stack, whose logs are the largest part of its memory."""
    labels = {STACK_LABEL: "worker"}
    term.guard.cache.note("ADDED", {"kind": "ConfigMap", "metadata": {"name": "worker-1", "labels": labels}})
    await term.show(1)
    report = await term.report()
    ids = [report.id, *named(report)]
    assert len(ids) == 3
    del report
    await evict(term)
    assert not set(ids) & set(term.node._host.store.cores)
    shown = await term.show(2)
    assert (shown.id in ids, seen(shown)["readyReplicas"], shown.transaction_count) == (True, 2, 2)
    assert set(ids) & set(term.node._host.store.cores) == {ids[0], shown.id}, "nothing else has changed"


async def _seconds_to_miss(term: Term, lost: str) -> float:
    began = time.monotonic()
    assert await load(term.node, lost) is None
    return time.monotonic() - began


async def test_what_a_server_has_lost_is_written_again_after_the_next_connection(
    term: Term, server: SyncServer
) -> None:
    """The server was restored from a backup, while the node had evicted what it had written since the backup."""
    lost = {(await term.show(7)).id, (await term.report()).id}
    await evict(term)
    assert not lost & set(term.node._host.store.cores)
    renewal = asyncio.create_task(term.reporter.renew())
    reports = asyncio.create_task(term.reporter.queue.run())
    try:
        await asyncio.wait([renewal, reports], timeout=0)
        await server.__aexit__(None, None, None)
        async with SyncServer(port=int(server.url.rpartition(":")[2])):
            await eventually("a new report", lambda: term.reports["worker"], lambda now: now not in lost, within=30.0)
            assert seen(await term.live_map())["readyReplicas"] == 7
            fastest = min(
                [await _seconds_to_miss(term, min(lost)) for _ in range(3)]
            )  # the machine may stand still once
            assert fastest < 1.0, "a thousand stacks have six thousand maps"
    finally:
        for task in (renewal, reports):
            task.cancel()


async def test_the_objects_of_an_applied_stack_are_in_memory_once(term: Term) -> None:
    """A Sentinel that starts reads them from its volume and from Jazz."""
    stored = StoredStack("worker", "co_zOwner", ({"kind": "ConfigMap", "metadata": {"name": "worker-1"}},))
    stored = term.guard.store.stacks["worker"] = stored.packed()
    same = DesiredStack("worker", "co_zOwner", ({"kind": "ConfigMap", "metadata": {"name": "worker-1"}},))
    term.reporter.set_desired(same)
    assert term.reporter.desired["worker"] == same
    assert term.reporter.desired["worker"].objects is stored.objects
    other = DesiredStack("worker", "co_zOwner", ({"kind": "ConfigMap", "metadata": {"name": "worker-2"}},))
    term.reporter.set_desired(other)
    assert term.reporter.desired["worker"] == other
    term.guard.store.stacks["worker"] = after = stored.after_apply(other).packed()
    term.reporter.succeed("worker")
    assert term.reporter.desired["worker"].objects is after.objects


async def test_a_removed_stack_leaves_no_report_map(term: Term) -> None:
    report, live = await term.report_of(1)
    term.reporter.remove("worker")
    await term.reporter._write("worker")
    assert "worker" not in term.reports
    assert report.deleted
    assert live.deleted


async def test_what_is_live_is_written_at_most_once_a_second_and_its_last_state_is(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "LIVE_S", 3600.0)
    report = await term.show(0)
    count = report.transaction_count
    for ready in range(20):
        await term.show(ready)
    assert report.transaction_count == count
    assert term.reporter.queue.statistics().waiting == 1, "it is written later"
    term.guard.repairer.problems[OBJECT] = "a problem"
    await term.show(20)
    assert (report.transaction_count, seen(report)["readyReplicas"]) == (count + 1, 20)
    await term.show(21)
    monkeypatch.setattr(reports, "LIVE_S", 0.0)
    await term.show(21)
    assert (report.transaction_count, seen(report)["readyReplicas"]) == (count + 2, 21)


async def test_what_others_do_to_objects_is_written_at_most_once_a_second(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may change objects could otherwise have a report written as often as he likes."""
    found: list[str] = []
    term.guard.repairer.findings_of = lambda _: tuple(found)
    await term.show(1)
    report = await term.report()
    monkeypatch.setattr(reporter, "LIVE_S", 3600.0)
    for number in range(20):
        found[:] = [f"somebody has added field {number}"]
        await term.show(1)
    assert report[OBJECT]["drift"] == ["somebody has added field 0"]
    assert term.reporter.queue.statistics().waiting == 1, "it is written later"
    monkeypatch.setattr(reporter, "LIVE_S", 0.0)
    await term.show(1)
    assert report[OBJECT]["drift"] == ["somebody has added field 19"]


async def test_a_report_shows_what_its_readers_need(term: Term) -> None:
    template = {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "x" * 2000}]}]}}
    live = {"kind": "Deployment", "metadata": {"name": "worker-1", "generation": 3, "managedFields": [{}] * 9}}
    live |= {"spec": {"replicas": 2, "template": template}, "status": {"readyReplicas": 1}}
    term.guard.cache.note("ADDED", live)
    await term.reporter._write("worker")
    report, shown = await term.report(), await term.live_map()
    assert report[OBJECT] == UNSEEN | {"status": "requested", "error": None}
    assert StackReport.parse(report.as_dict(), shown.as_dict()).objects[OBJECT].live == {
        "kind": "Deployment",
        "metadata": {"name": "worker-1", "generation": 3},
        "spec": {"replicas": 2},
        "status": {"readyReplicas": 1},
    }


async def test_the_process_forgets_the_reports_that_it_replaced(term: Term) -> None:
    """Each write stays in the log of its map, and so in memory."""
    counts = []
    for number in range(REPLACE_AFTER * 60):
        await term.show(number)
        if number % REPLACE_AFTER == 0:
            await term.node.flush()
            counts.append(term.node.statistics.values)
    assert max(counts[20:]) < 40


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
    monkeypatch.setattr(reports, "QUIET_S", 0.0)
    await term.show(3, time="4")
    assert seen(report)["conditions"][0]["lastUpdateTime"] == "4"


@pytest.mark.parametrize(
    ("present", "desired", "expected"),
    [
        ({"status": {"lastUpdateTime": "1"}}, {"status": {"lastUpdateTime": "2"}}, False),
        ({"items": [{"lastProbeTime": 1}]}, {"items": [{}]}, False),
        ({"metadata": {"generation": 1}}, {"metadata": {"generation": 2}}, True),
        (None, {"status": {}}, True),
    ],
)
def test_only_times_say_nothing(present: Any, desired: Any, expected: bool) -> None:
    assert says_more(present, desired) is expected


async def test_states_are_written_at_most_once_a_second(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of a rollout changes with each of its pods."""
    monkeypatch.setattr(reporter, "LIVE_S", 3600.0)
    live = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "labels": {STACK_LABEL: "worker"}}}
    states: list[tuple[str, int]] = []
    for number in range(9):
        term.guard.cache.note("MODIFIED", live | {"status": {"phase": "Bound" if number % 2 else "Pending"}})
        await term.reporter._write("worker")
        report = await term.report()
        states.append((report["PersistentVolumeClaim/c"]["state"], report.transaction_count))
    assert states[0][0] == "in-progress"
    assert set(states[1:]) == {("current", states[1][1])}


async def test_the_begin_of_an_operation_waits_and_its_result_does_not(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is declared and what the watches show meanwhile are one write, with the result."""
    written: list[str] = []

    async def write(name: str) -> None:
        written.append(name)

    monkeypatch.setattr(term.reporter.queue, "_handler", write)
    monkeypatch.setattr(reporter, "BEGUN_S", 3600.0)
    term.guard.store.stacks["worker"] = StoredStack("worker", "co_zOwner")
    queue = asyncio.create_task(term.reporter.queue.run())
    try:
        term.reporter.touch("other")
        await eventually("what was queued before", lambda: written, lambda found: "other" in found)
        written.clear()
        term.reporter.set_desired(term.reporter.desired["worker"])
        with term.reporter.progress.shown("worker", "revision", [OBJECT]):
            term.reporter.touch("worker", reporter.BEGUN_S)
            labels = {STACK_LABEL: "worker"}
            term.guard.cache.note("ADDED", {"kind": "Deployment", "metadata": {"name": "worker-1", "labels": labels}})
        term.reporter.touch("other")
        await eventually("what is due", lambda: written, lambda found: "other" in found)
        assert "worker" not in written
        term.reporter.succeed("worker")
        await eventually("the result", lambda: written, lambda found: "worker" in found)
        assert written.count("worker") == 1
    finally:
        queue.cancel()
