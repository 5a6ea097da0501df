"""The Sentinel's side of the fleet benchmark: a process of its own, an account that declares, a real Jazz and etcd."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from integration.sentinel.setup import Setup, new_setup
from support.live_objects import create_namespace
from support.replicas import Servers, run_servers
from support.sentinel import kubectl

from benchmarks.fleet_apps import application, name_of
from benchmarks.processes import cpu_s, memory_mib, processes_of
from reside.model.constants import MANAGED_BY_LABEL
from reside.model.kinds import BY_KIND
from reside.model.stacks import DesiredStack
from reside.sentinel.guard.api import KubernetesApi, connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from support.declarer import Declarer

    from reside.jazz import CoMap
    from reside.local import ClusterInfo

_ROOT = Path(__file__).resolve().parents[1]
WITHIN_S = 1800.0
REPAIRS = 40
PARTS = ("python", "engine", "provider", "jazz")
"""Kinds of processes for which CPU time and memory are printed separately."""
KINDS = ("ServiceAccount", "Secret", "Service", "NetworkPolicy", "Deployment")


class Reported:
    """Follows the reports in Jazz: which revision of each stack is applied.

    Args:
        alpha: the account that declares.
    """

    def __init__(self, alpha: Declarer) -> None:
        self._alpha = alpha
        self._applied: dict[str, Any] = {}
        self._wanted: dict[str, str] = {}
        """The revisions that are waited for and not applied yet."""
        self._maps: dict[str, CoMap] = {}
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        alpha.reports.on_change(lambda _: self._load_new())
        self._load_new()

    async def until(self, stacks: list[DesiredStack]) -> None:
        """Wait until these revisions are applied and reported."""
        wanted = {stack.name: stack.revision for stack in stacks}
        self._wanted = {name: revision for name, revision in wanted.items() if self._applied.get(name) != revision}
        try:
            async with asyncio.timeout(WITHIN_S):
                while self._wanted:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            missing = list(self._wanted)
            raise TimeoutError(f"{len(missing)} of {len(stacks)} stacks are not applied: {missing[:9]}") from None

    def _load_new(self) -> None:
        for name in self._alpha.reports:
            co_id, known = self._alpha.reports.get(name), self._maps.get(name)
            if isinstance(co_id, str) and (known is None or known.id != co_id):
                task = asyncio.create_task(self._load(name, co_id))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _load(self, name: str, co_id: str) -> None:
        found = await self._alpha.node.load_map(co_id)
        if self._alpha.reports.get(name) == co_id and self._maps.get(name) is not found:
            self._maps[name] = found
            found.on_change(lambda now: self._note(name, now))
            self._note(name, found)

    def _note(self, name: str, found: CoMap) -> None:
        if self._maps[name] is found:  # else it is the end of a map that was replaced
            revision = self._applied[name] = found.get("revision")
            if revision is not None and self._wanted.get(name) == revision:
                del self._wanted[name]
                self._changed.set()


@dataclass
class Fleet:
    """A Sentinel with its fleet. It runs, and its account may declare, once `start` and `connect` have returned."""

    cluster: ClusterInfo
    setup: Setup
    servers: Servers
    folder: Path
    process: asyncio.subprocess.Process = field(init=False)
    alpha: Declarer = field(init=False)
    reported: Reported = field(init=False)
    _values: dict[int, str] = field(default_factory=dict)
    _used: dict[int, tuple[str, float]] = field(default_factory=dict)
    """Process → its part, and the CPU time that it had used when it was looked at last."""

    async def start(self) -> None:
        """Start the Sentinel as its pod does."""
        chosen = self.setup.settings
        values = {
            name: value.get_secret_value() if hasattr(value, "get_secret_value") else value
            for name, value in chosen
            if value is not None
        }
        values["etcd_hosts"] = ",".join(chosen.etcd_hosts)
        environment = {**os.environ, **{f"RESIDE_{name.upper()}": str(value) for name, value in values.items()}}
        with (self.folder / "sentinel.log").open("ab") as out:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "benchmarks.fleet_process",
                str(self._standstill),
                env=environment,
                cwd=_ROOT,
                stdout=out,
                stderr=out,
            )

    @property
    def _standstill(self) -> Path:
        return self.folder / "standstill.json"

    def take_standstill(self) -> dict[str, float]:
        """Return how long the event loop stood still at most since the last call."""
        try:
            found: dict[str, float] = json.loads(self._standstill.read_text())
        except (FileNotFoundError, ValueError):  # it is being written, or was not yet
            return {}
        self._standstill.unlink()
        return found

    @contextmanager
    def unmeasured(self) -> Iterator[None]:
        """Do not measure the event loop while the block is open, because that takes CPU time."""
        self.process.send_signal(signal.SIGUSR1)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGUSR1)

    async def connect(self) -> None:
        """Get the permissions to declare, and follow the reports."""
        self.alpha = await self.setup.alpha()
        self.reported = Reported(self.alpha)

    async def stop(self) -> None:
        """Stop the Sentinel; do nothing if it does not run."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            await self.process.wait()

    async def declare(self, numbers: list[int], revision: int) -> list[DesiredStack]:
        """Declare these applications."""
        stacks = []
        for number in numbers:
            stacks.append(self._declare(number, revision))
            await asyncio.sleep(0)  # the writes go out while the next ones are made
        return stacks

    def _declare(self, number: int, revision: int) -> DesiredStack:
        alpha, name = self.alpha, name_of(number)
        if number not in self._values:
            self._values[number] = alpha.group.create_map({"value": f"secret-{number}"}).id
        objects = application(number, revision, values=self._values[number])
        stack = DesiredStack(name, alpha.node.account_id, tuple(objects))
        if name in alpha.maps:
            alpha.maps[name].update(stack.document())
        else:
            alpha.maps[name] = alpha.group.create_map(stack.document())
            alpha.desired.set(name, alpha.maps[name].id)
        return stack

    async def apply(self, numbers: list[int], revision: int) -> float:
        """Declare these applications; return the seconds until all are applied and reported."""
        began = time.monotonic()
        await self.reported.until(await self.declare(numbers, revision))
        return time.monotonic() - began

    async def empty_namespace(self) -> None:
        """Delete all objects of the fleet."""
        for kind in map(BY_KIND.__getitem__, KINDS):  # one request each, where kubectl would send one an object
            root = "/api/v1" if kind.api_version == "v1" else f"/apis/{kind.api_version}"
            path = f"{root}/namespaces/{self.setup.namespace}/{kind.plural}?labelSelector={MANAGED_BY_LABEL}"
            await asyncio.to_thread(kubectl, self.cluster, "delete", "--raw", path)

    async def until_restored(self, count: int) -> None:
        """Wait until as many objects are live."""
        async with self._api() as api, asyncio.timeout(WITHIN_S):
            while await _live_objects(api) < count:  # noqa: ASYNC110 - a list is the measure, a watch would add load
                await asyncio.sleep(0.2)

    async def repairs(self, count: int) -> list[float]:
        """Delete the Service of so many applications, one after the other; return the seconds until it is back."""
        taken = []
        async with self._api() as api:
            for number in range(min(count, REPAIRS)):  # an object that is deleted again and again is put off
                key = f"Service/{name_of(number)}"
                live = await api.get(key) or {}
                began = time.monotonic()
                await api.delete(key, live["metadata"]["uid"])
                async with asyncio.timeout(WITHIN_S):
                    while await api.get(key) is None:  # noqa: ASYNC110 - as above
                        await asyncio.sleep(0.002)
                taken.append(time.monotonic() - began)
        return taken

    def memory(self) -> dict[str, float]:
        """Return the resident memory by part, in MiB."""
        return {part: sum(map(memory_mib, pids)) for part, pids in self._pids().items()}

    def cpu(self) -> dict[str, float]:
        """Return the CPU time that was used by part, in seconds, also by processes that have ended."""
        self._note_cpu()
        used = dict.fromkeys(PARTS, 0.0)
        for part, seconds in self._used.values():
            used[part] += seconds
        return used

    async def note_cpu(self) -> None:
        """Look at the processes every second: an engine hands over to another one, and ends."""
        while True:
            self._note_cpu()
            await asyncio.sleep(1)

    def _note_cpu(self) -> None:
        for part, pids in self._pids().items():
            for pid in pids:
                self._used[pid] = (part, max(cpu_s(pid), self._used.get(pid, (part, 0.0))[1]))

    def _pids(self) -> dict[str, list[int]]:
        children = processes_of(self.folder)
        return {
            "python": [self.process.pid],
            "engine": [pid for pid, name in children.items() if name.startswith("reside-engine")],
            "provider": [pid for pid, name in children.items() if name.startswith("pulumi-resourc")],
            "jazz": [self.servers.jazz.pid],
        }

    @asynccontextmanager
    async def _api(self) -> AsyncIterator[KubernetesApi]:
        async with connect(self.setup.namespace, self.cluster.kubeconfig, self.cluster.context) as api:
            yield api


async def _live_objects(api: KubernetesApi) -> int:
    return sum([len((await api.list_all(BY_KIND[kind]))[0]) for kind in KINDS])


@asynccontextmanager
async def fleet(cluster: ClusterInfo, namespace: str, folder: Path) -> AsyncIterator[Fleet]:
    """Yield a fleet in a new namespace; its Sentinel runs."""
    await asyncio.to_thread(create_namespace, cluster, namespace)
    with run_servers() as servers:
        async with new_setup(cluster, servers, namespace, folder / "state") as setup:
            made = Fleet(cluster, setup, servers, folder)
            await made.start()
            noting = asyncio.create_task(made.note_cpu())
            try:
                await made.connect()
                yield made
            finally:
                noting.cancel()
                await made.stop()


def api_requests(cluster: ClusterInfo) -> int:
    """Return how many requests the API server has answered for objects of the fleet's kinds, without watches."""
    plurals, total = {BY_KIND[kind].plural for kind in KINDS}, 0.0
    for line in kubectl(cluster, "get", "--raw", "/metrics").splitlines():
        if not line.startswith("apiserver_request_total{"):
            continue
        head, _, value = line.rpartition(" ")
        pairs = (part.split("=", 1) for part in head.partition("{")[2].rstrip("}").split(",") if "=" in part)
        labels = {name: json.loads(text) for name, text in pairs}
        if labels["resource"] in plurals and not labels["subresource"] and labels["verb"] != "WATCH":
            total += float(value)
    return int(total)
