"""Deaths at points of the operations of a whole Sentinel, and what must be true after each."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from integration.sentinel.processes import kill_pod, process
from support.api_proxy import ApiProxy, CutError, Request, Side
from support.eventually import eventually
from support.live_objects import live_objects
from support.sentinel import config_map, kubectl

from reside.locks.etcd import Etcd
from reside.model.constants import MANAGED_BY_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from integration.sentinel.setup import Setup
    from support.declarer import Declarer

    from reside.local import ClusterInfo

POD: Final = "pod"
"""The victim that is the Sentinel with its engine and provider. All others are servers."""
OPERATIONS: Final = ("create", "update", "repair", "restore", "prune", "delete", "remove")
SIDES: Final[tuple[Side, ...]] = ("before", "after")
_MANY = 60
"""Objects beside those that operations are about: a tenth of all may be pruned within ten minutes."""
_LIVE = {MANAGED_BY_LABEL: "kubernetes-sentinel"}


class Server(Protocol):
    """A server that dies."""

    def kill(self) -> None:
        """Kill its process (SIGKILL)."""

    def start(self) -> None:
        """Start it again, with its data, and wait until it serves."""


class Deaths:
    """A Sentinel behind a proxy of the API server, and what is declared to it.

    Args:
        cluster: its cluster.
        setup: its setup.
        servers: the servers that may die, by name.
        proxy: the proxy.
    """

    def __init__(self, cluster: ClusterInfo, setup: Setup, servers: Mapping[str, Server], proxy: ApiProxy) -> None:
        self._cluster, self._setup, self._servers, self._proxy = cluster, setup, servers, proxy
        self._settings = setup.settings.model_copy(update={"kubeconfig": proxy.kubeconfig})
        self._declared: dict[str, tuple[dict[str, Any], ...]] = {}
        self._alpha: Declarer | None = None
        self.names: list[str] = []

    async def run(self, points: Iterable[tuple[str, Side, str]]) -> None:
        """Let the victims die at points, one after another; a pod that has died is replaced by a new one."""
        waiting = list(points)
        while waiting:
            async with process(self._settings) as pod:
                if self._alpha is None:
                    self._alpha = await self._setup.alpha()
                    await self._setup.careful(value=False)
                    await self._declare("demo", a="1", b="1")
                    many = {f"many-{number}": "1" for number in range(_MANY)}
                    await self._declare("many", **many)
                    for name in "cdefgh":
                        await self._declare(name, **{name: "1"})
                await self._settled()
                while waiting and pod.returncode is None:
                    operation, side, victim = waiting.pop(0)
                    await self._die(pod, operation, side, victim)
        async with process(self._settings):
            await self._settled()

    async def _die(self, pod: asyncio.subprocess.Process, operation: str, side: Side, victim: str) -> None:
        """Begin an operation, and let the victim die at its first write."""
        dead, name = asyncio.Event(), self._object(operation)
        method = "DELETE" if operation in ("delete", "remove", "prune") else "PATCH"

        def seen(request: Request, now: Side) -> None:
            is_write = request.method == method and request.resource == f"configmaps/{name}"
            if dead.is_set() or now != side or not is_write:
                return
            dead.set()
            self.names.append(f"{operation}: {victim} dies {side} {request}")
            if victim == POD:
                kill_pod(pod.pid)
                raise CutError
            self._servers[victim].kill()

        self._proxy.seen = seen
        await self._begin(operation, name)
        await eventually(f"{method} {name} ({operation}), after {self.names}", dead.is_set, within=120)
        self._proxy.seen = lambda _request, _side: None
        if victim == POD:
            await pod.wait()
            await self._expire_lease()
        else:
            await asyncio.to_thread(self._servers[victim].start)
            await self._settled()

    async def _expire_lease(self) -> None:
        """Let the lease of the dead leader expire now, and not within 30 s."""
        client = Etcd(self._setup.settings.etcd_hosts)
        try:
            for lease in (await client.gateway.post("/v3/lease/leases", {})).get("leases", []):
                await client.gateway.post("/v3/lease/revoke", {"ID": lease["ID"]})
        finally:
            await client.aclose()

    def _object(self, operation: str) -> str:
        """Return the name of the object that an operation writes."""
        number = len(self.names) + 2
        return {
            "create": f"new-{number}",
            "prune": f"unknown-{number}",
            "delete": "b",
            "remove": list(self._declared)[-1],
        }.get(operation, "a")

    async def _begin(self, operation: str, name: str) -> None:
        value = str(len(self.names) + 2)
        match operation:
            case "create":
                await self._declare(name, **{name: "1"})
            case "update":
                await self._declare("demo", a=value, b="1")
            case "delete":
                await self._declare("demo", a=value, b="1")
                await self._settled()
                await self._declare("demo", a=value)
            case "remove":
                assert self._alpha is not None
                del self._declared[name]
                self._alpha.desired.delete(name)
                await self._alpha.node.flush()
            case "repair":
                await self._kubectl("patch", "configmap", name, "--type=merge", "-p", '{"data": {"x": "foreign"}}')
            case "restore":
                await self._kubectl("delete", "configmap", name, "--wait=false")
            case "prune":
                await self._kubectl("create", "-f", "-", stdin=json.dumps(config_map(name, "nobody")))

    async def _declare(self, stack: str, **values: str) -> None:
        assert self._alpha is not None
        self._declared[stack] = tuple(config_map(name, stack, x=value) for name, value in values.items())
        await self._alpha.declare(stack, *self._declared[stack])

    async def _settled(self) -> None:
        """Wait until live = desired, all stacks are reported as applied, and nothing is locked, marked or pending."""
        wanted = {each["metadata"]["name"]: each["data"] for objects in self._declared.values() for each in objects}

        def live() -> dict[str, Any]:
            found = live_objects(self._cluster, self._setup.namespace, "ConfigMap", _LIVE)
            return {each["metadata"]["name"]: each.get("data") for each in found}

        await eventually("that live = desired", lambda: asyncio.to_thread(live), lambda now: now == wanted, within=90)
        await eventually("that nothing is left", self._left, lambda left: not left, within=60)
        assert self._alpha is not None
        for stack in self._declared:
            await self._alpha.report(stack, lambda now: now.get("revision") and not now.get("error"))

    def _left(self) -> list[str]:
        """Return what an interrupted operation left in the volume."""
        found = []
        for folder, _, files in os.walk(self._settings.engine_dir / "workspaces"):  # they may be removed meanwhile
            found += [f"{folder}/{file}" for file in files if self._is_left(Path(folder), file)]
        return found

    def _is_left(self, folder: Path, file: str) -> bool:
        """Return whether a file is one of a removed stack, a mark, a lock, or a state with pending operations."""
        path = folder / file
        stack = path.relative_to(self._settings.engine_dir / "workspaces").parts[0]
        if stack not in self._declared or file == ".running" or ("locks" in folder.parts and path.suffix == ".json"):
            return True
        try:
            return file == f"{stack}.json" and b"pending_operations" in path.read_bytes()
        except FileNotFoundError:
            return False

    async def _kubectl(self, *arguments: str, stdin: str | None = None) -> None:
        await asyncio.to_thread(kubectl, self._cluster, "-n", self._setup.namespace, *arguments, stdin=stdin)
