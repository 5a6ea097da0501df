"""A Sentinel that has lived long needs no more than before: memory, threads, descriptors, files, state and Jazz."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import lightkube
import pytest
import yaml
from integration.sentinel.processes import descendants, process
from lightkube.resources.apps_v1 import Deployment
from support.etcd import etcd_server
from support.eventually import eventually
from support.jazz_server import jazz_server
from support.replicas import Servers
from support.reports import report
from support.sentinel import config_map, workload

from reside.resident.sessions import session_members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.sentinel.setup import Setup
    from support.declarer import Declarer

    from reside.local import ClusterInfo
    from reside.model.stacks import DesiredStack

pytestmark = [pytest.mark.anyio, pytest.mark.soak, pytest.mark.timeout(3600)]
_STACKS, _CHANGES, _EVENTS, _ROUNDS = 20, 1000, 20_000, 5
_BOUNDS = {
    "Sentinel MiB": 30,
    "engine MiB": 120,
    "threads": 16,
    "descriptors": 24,
    "files": 4,
    "volume KiB": 200,
    "Jazz KiB": 1500,
}
"""Greatest growth from the end of the first round, a fifth of the load, to the end of the last one. Engine and provider
are replaced when they have grown to a limit of their own. Of each deleted value, Jazz keeps that it is deleted. A node
evicts what others have deleted once it has 512 values, so the Sentinel grows until then."""
_REPLACE_AFTER = 8
"""Changes of a stack after which it is declared in a new map, as Alpha does."""


@pytest.fixture
def servers() -> Iterator[Servers]:
    """Servers of this test alone, of which the sync server erases every two seconds."""
    with jazz_server(MODE="members", ERASE_S="2") as jazz, etcd_server() as etcd:
        yield Servers(jazz, etcd)


class Usage:
    """What a Sentinel with its engine and provider uses."""

    def __init__(self, pod: int, setup: Setup, servers: Servers) -> None:
        self._pod, self._setup, self._file = pod, setup, servers.jazz.folder / "jazz.sqlite"
        self._sessions: set[int] = set()
        """Sessions of engines; the successor of an engine is no descendant of the Sentinel."""

    async def now(self) -> dict[str, float]:
        """Return it, once all deleted values are erased."""
        await eventually("the erasure", lambda: self._count("status = 0"), lambda count: count == 0, within=120)
        return self._measure()

    def _measure(self) -> dict[str, float]:
        found = dict.fromkeys(_BOUNDS, 0.0)
        for pid in self._processes():
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
                memory = "Sentinel MiB" if pid == self._pod else "engine MiB"
                found[memory] += int(status.get("VmRSS", "0 kB").split()[0]) / 1024
                found["threads"] += int(status["Threads"])
                found["descriptors"] += len(list(Path(f"/proc/{pid}/fd").iterdir()))
        files = [path for path in self._setup.settings.state_dir.rglob("*") if path.is_file() and not path.is_symlink()]
        found["files"] = len(files)
        found["volume KiB"] = sum(path.stat().st_size for path in files if path.suffix != ".log") / 1024
        found["Jazz KiB"] = self._file.stat().st_size / 1024
        return {name: round(value, 1) for name, value in found.items()}

    def deleted(self) -> int:
        """Return how many values were deleted in Jazz."""
        return self._count("status = 1")

    def _processes(self) -> set[int]:
        children = set(descendants(self._pod))
        for pid in children:
            with suppress(ProcessLookupError):
                self._sessions.add(os.getsid(pid))
        self._sessions.discard(os.getsid(self._pod))
        return children.union(*(session_members(leader) for leader in self._sessions))

    def _count(self, condition: str) -> int:
        with closing(sqlite3.connect(self._file)) as database:
            (count,) = database.execute(f"SELECT count(*) FROM deletedCoValues WHERE {condition}").fetchone()  # noqa: S608
            return int(count)


async def change(alpha: Declarer, first: int, last: int) -> None:
    """Change the stacks one after another, `last - first` times in all, and wait for the end of each round of them."""
    for number in range(first, last, _STACKS):
        for stack in [await _declare(alpha, f"s{index}", f"{number} {'x' * 500}") for index in range(_STACKS)]:
            await alpha.applied(stack)


async def _declare(alpha: Declarer, name: str, value: str) -> DesiredStack:
    before = alpha.maps.get(name)
    if before is not None and before.transaction_count >= _REPLACE_AFTER:
        del alpha.maps[name]
    objects = config_map(name, name, x=value), workload("Deployment", name, name, replicas=0)
    stack = await alpha.declare(name, *objects)
    if before is not None and name in alpha.maps and alpha.maps[name] is not before:
        before.destroy()
    return stack


def show(cluster: ClusterInfo, namespace: str, first: int, last: int) -> None:
    """Write so many statuses of the Deployments, as their controller does."""
    config = lightkube.KubeConfig.from_dict(yaml.safe_load(cluster.kubeconfig.read_text())).get(cluster.context)
    client = lightkube.Client(config=config, trust_env=False, namespace=namespace)
    for number in range(first, last):  # not on several threads: lightkube's decoder crashes then
        client.patch(Deployment.Status, f"s{number % _STACKS}", {"status": {"observedGeneration": number + 1}})


async def test_a_thousand_changes_and_twenty_thousand_events_leave_nothing(
    cluster: ClusterInfo, setup: Setup, servers: Servers
) -> None:
    rounds = []
    async with process(setup.settings) as pod:
        alpha, usage = await setup.alpha(), Usage(pod.pid, setup, servers)
        await change(alpha, 0, 1)
        for number in range(_ROUNDS):
            events = asyncio.to_thread(
                show, cluster, setup.namespace, number * _EVENTS // _ROUNDS, (number + 1) * _EVENTS // _ROUNDS
            )
            await change(alpha, number * _CHANGES // _ROUNDS, (number + 1) * _CHANGES // _ROUNDS)
            await events
            await change(alpha, -number - 1, -number)  # after the last event
            rounds.append(await usage.now())
            report(
                f"after {(number + 1) * 100 // _ROUNDS} %: {rounds[-1]}; {usage.deleted()} values were deleted in Jazz"
            )
        assert pod.returncode is None
    growth = {name: rounds[-1][name] - rounds[0][name] for name in _BOUNDS}
    assert {name: value for name, value in growth.items() if value > _BOUNDS[name]} == {}
