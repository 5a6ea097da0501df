"""Deaths of a control plane at points of the work of a Sentinel, and what must be true soon after its return."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from support.api_proxy import CutError, Side
from support.eventually import eventually, eventually_sync
from support.live_objects import live_objects
from support.sentinel import config_map

from reside.common.processes import identify
from reside.model.constants import MANAGED_BY_LABEL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from integration.sentinel.setup import Setup
    from support.api_proxy import ApiProxy, Request
    from support.declarer import Declarer

    from reside.local import LocalCluster
    from reside.model.stacks import DesiredStack

VICTIMS: Final = {"API server": ("kube-apiserver",), "etcd": ("etcd",), "both": ("kube-apiserver", "etcd")}
OPERATIONS: Final = ("create", "update", "delete")
SIDES: Final[tuple[Side, ...]] = ("before", "after")
RETURN_S: Final = 60.0
"""Seconds from the moment at which the API server is ready again, within which everything is as desired."""
_OURS: Final = {MANAGED_BY_LABEL: "kubernetes-sentinel"}


class Point(NamedTuple):
    """A point of an operation: before or after its request about its object with this number, from 1."""

    operation: str
    side: Side
    number: int
    victim: str


class ControlPlane:
    """The processes of a control plane.

    Args:
        cluster: the control plane.
    """

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._pids: dict[str, int | None] = {}

    async def find(self) -> None:
        """Find the processes that run now."""
        found = await asyncio.to_thread(self._cluster.status)
        self._pids = {status.name: status.pid for status in found}

    def kill(self, *names: str) -> None:
        """Kill -9 components that were found, and wait until they have ended."""
        pids = [self._pids[name] for name in names]
        for pid in pids:
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
        eventually_sync(f"the end of {names}", lambda: not any(pid and identify(pid) for pid in pids), within=60)

    async def start(self) -> None:
        """Start what has ended, as `reside local up` does, and wait until it serves."""
        await asyncio.to_thread(self._cluster.up)


class ControlPlaneDeaths:
    """A running Sentinel behind a proxy of an API server, and what is declared to it.

    Args:
        cluster: the control plane.
        setup: the setup of the Sentinel.
        proxy: the proxy.
        alpha: declares the stacks.

    Attributes:
        tried: the points at which the control plane died, and after how many seconds all was as desired.
    """

    def __init__(self, cluster: LocalCluster, setup: Setup, proxy: ApiProxy, alpha: Declarer) -> None:
        self._control, self._info = ControlPlane(cluster), cluster.info()
        self._namespace, self._proxy, self._alpha = setup.namespace, proxy, alpha
        self._declared: dict[str, tuple[DesiredStack, dict[str, dict[str, str]]]] = {}
        self._deleted: list[str] = []
        self._count = 0
        self.tried: list[str] = []

    async def requests(self, operation: str) -> list[str]:
        """Return the requests of an operation about its object, without a death."""
        found: list[str] = []
        name = await self._prepare(operation)

        def seen(request: Request, side: Side) -> None:
            if side == "before" and _name(request) == name:
                found.append(str(request))

        self._proxy.seen = seen
        await self._begin(operation)
        await self._settled(RETURN_S)
        return found

    async def die(
        self, point: Point, meanwhile: Callable[[], Awaitable[object]] | None = None, within: float = RETURN_S
    ) -> bool:
        """Let the control plane die at a point, start it again, and check what comes of it.

        Args:
            point: the point.
            meanwhile: called before the start.
            within: seconds from the moment at which the API server is ready again.

        Returns:
            whether the operation came to the point.
        """
        name = await self._prepare(point.operation)
        await self._control.find()
        before, dead = await self._uids(), asyncio.Event()
        self._deleted.clear()
        self._proxy.seen = self._killer(point, name, dead)
        await self._begin(point.operation)
        if not await self._comes_to(dead):
            return False
        if meanwhile is not None:
            await meanwhile()
        await self._control.start()
        seconds = await self._settled(within)
        self.tried[-1] += f": as desired {seconds:.1f} s after the return"
        after = await self._uids()
        kept = before.keys() & after.keys()
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}, point
        assert [name for name in self._deleted if name in after] == [], point
        return True

    async def _comes_to(self, dead: asyncio.Event) -> bool:
        """Return whether the control plane dies before the operation has ended."""
        death, end = asyncio.create_task(dead.wait()), asyncio.create_task(self._settled(RETURN_S))
        await asyncio.wait({death, end}, return_when=asyncio.FIRST_COMPLETED)
        is_dead = dead.is_set()
        dead.set()  # nothing dies from now on
        if not is_dead:
            await end
            return False
        end.cancel()
        await asyncio.gather(end, return_exceptions=True)
        return True

    def _killer(self, point: Point, name: str, dead: asyncio.Event) -> Callable[[Request, Side], None]:
        count = 0

        def seen(request: Request, side: Side) -> None:
            nonlocal count
            if side == "before" and request.method == "DELETE":
                self._deleted.append(_name(request))
            if dead.is_set() or side != point.side or _name(request) != name:
                return
            count += 1
            if count < point.number:
                return
            dead.set()
            self.tried.append(f"{point.victim} dies {side} request {count} of {point.operation}, {request}")
            self._control.kill(*VICTIMS[point.victim])
            if point.victim != "etcd":
                raise CutError

        return seen

    async def _prepare(self, operation: str) -> str:
        """Declare what an operation needs before it; return the name of the object that it writes."""
        self._count += 1
        if operation == "create":
            name = f"new-{self._count}"
        else:
            name = {"update": "a", "delete": "b"}[operation]
            await self._declare("demo", a="before", b="before")
        await self._settled(RETURN_S)
        return name

    async def _begin(self, operation: str) -> None:
        match operation:
            case "create":
                await self._declare(f"new-{self._count}", **{f"new-{self._count}": "after"})
            case "update":
                await self._declare("demo", a="after", b="before")
            case "delete":
                await self._declare("demo", a="before")

    async def _declare(self, stack: str, **values: str) -> None:
        objects = tuple(config_map(name, stack, x=value) for name, value in values.items())
        done = await self._alpha.declare(stack, *objects)
        self._declared[stack] = done, {name: {"x": value} for name, value in values.items()}

    async def _settled(self, within: float) -> float:
        """Wait until live = desired and all is reported as applied; return after how many seconds."""
        began = time.monotonic()
        wanted = {name: data for _, values in self._declared.values() for name, data in values.items()}
        what = f"live = desired after {self.tried[-1:]}"
        await eventually(what, self._live, lambda now: now == wanted, within=within)
        for stack, (declared, _) in self._declared.items():
            left = began + within - time.monotonic()
            await self._alpha.report(stack, partial(_is_applied, declared.revision), seconds=left)
        return time.monotonic() - began

    async def _live(self) -> dict[str, Any]:
        return {each["metadata"]["name"]: each.get("data") for each in await self._found()}

    async def _uids(self) -> dict[str, str]:
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in await self._found()}

    async def _found(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(live_objects, self._info, self._namespace, "ConfigMap", _OURS)


def _name(request: Request) -> str:
    return request.resource.rpartition("/")[2]


def _is_applied(revision: str, report: dict[str, Any]) -> bool:
    return report.get("revision") == revision and not report.get("error")
