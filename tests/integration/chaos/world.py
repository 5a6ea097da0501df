"""An engine that dies at chosen points of an operation, and what must be true after its next operation."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from integration.chaos.operations import live, value
from integration.engine.dying import Died, mortal
from integration.engine.running import session
from support.api_proxy import ApiProxy, CutError, Request, Side, api_proxy
from support.durable_files import DurableFiles
from support.file_events import appearing
from support.sentinel import new_namespace

from reside.common.transience import is_transient
from reside.model.stacks import object_key
from reside.sentinel.engine import EngineError, EngineSettings, PulumiEngine, StackSpec
from reside.sentinel.engine.stack_files import StackFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from integration.chaos.operations import Objects, Operation

    from reside.local import ClusterInfo

Victim: TypeAlias = Literal["engine", "provider", "api server", "pod", "power"]
"""What dies: the engine with its provider, the provider, all connections to the API server for the next requests, all
processes of the pod, or all of them with what is not on the disk."""
VICTIMS: tuple[Victim, ...] = ("engine", "provider", "api server", "pod", "power")
What: TypeAlias = Literal["request", "state"]
_ATTEMPTS = 5
_REFUSED = 3
"""Requests that a dead API server refuses before it is there again."""


@dataclass(frozen=True)
class Point:
    """A point in an operation: before or after its request, or its write of the state, with this number (from 1)."""

    what: What
    side: Side
    number: int


def points(what: What) -> Iterator[Point]:
    """Return the points of an operation, without end."""
    return (Point(what, side, number) for number in itertools.count(1) for side in ("before", "after"))


class World:
    """An engine behind a proxy of the API server, on a disk that may lose what was not synced."""

    def __init__(self, info: ClusterInfo, namespace: str, folder: Path, proxy: ApiProxy) -> None:
        self._info, self._namespace, self._proxy = info, namespace, proxy
        self._settings = EngineSettings(
            folder / "volume" / "engine", "the-passphrase", namespace, proxy.kubeconfig, info.context
        )
        self._settings.folder.parent.mkdir()
        self.disk = DurableFiles(self._settings.folder.parent)
        self.engine = PulumiEngine(self._settings)
        self._count = 0

    async def survives(self, operation: Operation, point: Point, victim: Victim) -> str | None:
        """Let the victim die at a point of an operation, and check what is there after the next operation.

        Returns:
            the name of the point; None if the operation ended before it came to the point.
        """
        self._count += 1
        self.disk.settle()
        stack = f"{operation.name}-{self._count}"
        before, after = operation.before(stack), operation.after(stack)
        if before:
            await self.engine.apply(StackSpec(stack, before))
        uids = self._uids(stack)
        if operation.is_lost:
            StackFiles(self._settings, stack).remove()
        spec = StackSpec(stack, after, expected=operation.expected(after, uids))
        death = await self._until_dead(point, victim, spec)
        if victim in ("pod", "power"):
            await self._restart(random.Random(self._count) if victim == "power" and self._count % 3 else None, victim)  # noqa: S311
        await self._again(StackSpec(stack, after))
        self._check(stack, after, uids if operation.name != "replace" else {}, death.done)
        await self._again(StackSpec(stack, ()))
        return death.name and f"{operation.name}: {victim} dies {death.name}"

    async def _until_dead(self, point: Point, victim: Victim, spec: StackSpec) -> _Death:
        """Run an operation until it ends, or until the victim has died at a point of it."""
        workspace = self._settings.workspace(spec.name)
        states = workspace / ".pulumi" / "stacks" / "reside"
        states.mkdir(parents=True, exist_ok=True)
        with mortal(self._settings.folder) as die:
            death = _Death(self, spec, point, victim, die)
            with appearing(states, death.file):
                self._proxy.seen = death.request
                with suppress(EngineError, Died):
                    await self._run(spec)
                self._proxy.seen = lambda _request, _side: None
            # Leaving `appearing` waits for what it still has to report: a write just before the end is a point, too.
        return death

    async def _run(self, spec: StackSpec) -> None:
        if spec.objects:
            await self.engine.apply(spec)
        else:
            await self.engine.destroy(spec.name)

    async def _again(self, spec: StackSpec) -> None:
        """Run an operation until it succeeds, as the Sentinel does: again after a transient error only."""
        for attempt in range(_ATTEMPTS):
            try:
                return await self._run(spec)
            except EngineError as error:
                if not is_transient(error) or attempt == _ATTEMPTS - 1:
                    raise
        return None

    async def _restart(self, source: random.Random | None, victim: Victim) -> None:
        """Start a new engine, as a new pod does, on what is left of the volume."""
        await self.engine.stop()
        if victim == "power":
            self.disk.lose_power(source)
        self.engine = PulumiEngine(self._settings)

    def kill(self, victim: Victim) -> None:
        """Kill processes of the engine."""
        runner: Any = self.engine._runner
        leader = runner._engine._process.pid
        for pid, name in session(leader).items():
            if victim != "provider" or name.startswith("pulumi-resource"):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _uids(self, stack: str) -> dict[str, str]:
        found = live(self._info, self._namespace, stack)
        return {key: each["metadata"]["uid"] for key, each in found.items()}

    def done(self, stack: str, wanted: Objects) -> dict[str, str]:
        """Return the uids of the objects that are as they are wanted."""
        found = live(self._info, self._namespace, stack)
        values = {object_key(each): value(each) for each in wanted}
        return {
            key: each["metadata"]["uid"] for key, each in found.items() if key in values and value(each) == values[key]
        }

    def _check(self, stack: str, wanted: Objects, before: dict[str, str], at_death: dict[str, str]) -> None:
        """Check that live = desired, that nothing was made twice, and that nothing is locked, marked or pending."""
        done = self.done(stack, wanted)
        assert self._uids(stack) == done, f"{stack}: other objects are live than those wanted"
        assert done.keys() == {object_key(each) for each in wanted}
        for earlier in (before, at_death):
            kept = {key: uid for key, uid in earlier.items() if key in done}
            assert {key: done[key] for key in kept} == kept, f"{stack}: an object was made anew"
        files = StackFiles(self._settings, stack)
        if not wanted:
            assert not files.workspace.exists()
            return
        state = json.loads(files._state_file.read_bytes())["checkpoint"]["latest"]
        assert not state.get("pending_operations")
        assert len(state["resources"]) == len({each["urn"] for each in state["resources"]}) == len(wanted) + 2
        assert not files.interrupted
        assert not list((files.workspace / ".pulumi" / "locks").rglob("*.json"))


class _Death:
    """Waits for a point of an operation, and lets the victim die there.

    Args:
        world: where it dies.
        spec: the stack of the operation, as it is wanted.
        point: where in the operation.
        victim: what dies.
        die: ends this process's part of the operation.
    """

    def __init__(self, world: World, spec: StackSpec, point: Point, victim: Victim, die: Callable[[], None]) -> None:
        self._world, self._stack, self._wanted = world, spec.name, spec.objects
        self._point, self._victim, self._die = point, victim, die
        self._numbers: dict[tuple[str, Side], int] = {}
        self._refused = 0
        self.name = ""
        self.done: dict[str, str] = {}

    def request(self, request: Request, side: Side) -> None:
        """Count a request of the engine; at the point, the victim dies and the client gets no answer."""
        if self._stack not in request.resource and not request.resource.endswith("s"):
            return
        if self._refused > 0:
            self._refused -= 1
            raise CutError
        if self._is_point("request", side, f"{side} {request}"):
            raise CutError

    def file(self, name: str, renamed: bool) -> None:
        """Count a write of the state, which begins with a draft and ends with its renaming."""
        if (renamed or name.endswith(".tmp")) and f"{self._stack}.json" in name:
            side: Side = "after" if renamed else "before"
            if not (renamed and name.endswith(".bak")):
                self._is_point("state", side, f"{side} a write of the state")

    def _is_point(self, what: What, side: Side, name: str) -> bool:
        number = self._numbers[what, side] = self._numbers.get((what, side), 0) + 1
        if self.name or self._point != Point(what, side, number):
            return False
        self.name = f"{name} ({number})"
        if self._victim == "api server":
            self._refused = _REFUSED
            return True
        if self._victim in ("pod", "power"):
            self._die()
        self._world.kill(self._victim)
        self.done = self._world.done(self._stack, self._wanted)
        return True


@asynccontextmanager
async def new_world(info: ClusterInfo, folder: Path) -> AsyncIterator[World]:
    """Yield a world in a namespace of its own."""
    namespace = await asyncio.to_thread(new_namespace, info)
    async with api_proxy(info, namespace, folder) as proxy:
        world = World(info, namespace, folder, proxy)
        try:
            with world.disk.following():
                yield world
        finally:
            await world.engine.stop()
            world.disk.close()
