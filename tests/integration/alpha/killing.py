"""Kill or pause Alpha at every point of an operation, let the next Alpha continue, and check what has become of it all.

Nobody does anything afterwards: the next leader continues, and whoever got no answer calls again. Then no id and no
name is there twice, each version has the digest of its request, the declared stacks are the rendered ones, and the
expected permissions are those that are due (`support.cluster_invariants`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from integration.alpha.load_operations import LOAD_OPERATIONS
from integration.alpha.operations import Stage
from integration.alpha.permission_operations import PERMISSION_OPERATIONS
from integration.alpha.replica_operations import REPLICA_OPERATIONS
from support.alpha_lives import Life
from support.life_points import FLUSH

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from integration.alpha.operations import Operation
    from support.alpha_world import World

KEPT, LOST, PAUSED = "kept", "lost", "paused"
"""What becomes of writes that are not acknowledged: they are delivered, lost, or sent when the process continues."""
_POINTS_PER_WORLD = 40
"""A cluster that has seen more has so much content that each new life takes long."""


@dataclass
class Tried:
    """How many points were tried, by operation and manner."""

    points: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __str__(self) -> str:
        manners = sorted({manner for _, manner in self.points})
        lines = [
            f"{name:28}" + "".join(f"{manner} {self.points[name, manner]:3}  " for manner in manners)
            for name in dict.fromkeys(name for name, _ in self.points)
        ]
        return "\n".join([*lines, f"{self.total} points"])

    @property
    def total(self) -> int:
        """The number of all points."""
        return sum(self.points.values())


class Killer:
    """Kills and pauses lives of a cluster's Alpha.

    Attributes:
        tried: the points that were tried.
        every: whether each suspension and resumption is a point.
        life: the present life, which does not lead between two points.
    """

    def __init__(self, world: World, life: Life, tried: Tried, *, every: bool) -> None:
        self.world = world
        self.life = life
        self.tried = tried
        self.every = every
        self.stage = Stage(world)

    @classmethod
    async def begin(cls, world: World, tried: Tried, *, every: bool) -> Killer:
        """Begin the first life, and load what the workers require."""
        killer = cls(world, await Life.begin(world.hosts), tried, every=every)
        killer.life.lead()
        killer.stage.greeter = (await world.loaded(killer.life, "greeter:v1")).id
        await killer.life.rest()
        return killer

    async def end(self) -> None:
        """Look at everything once more, and end the last life."""
        self.life.lead()
        await self.world.settled(self.life, "the end", whole=True)
        await self.life.end()

    async def kill(self, operation: Operation, point: int) -> bool:
        """Kill at a point: deliver the writes that are not acknowledged, then lose them, if there are any.

        Writes that were made since the last acknowledgement are lost together, so without `every` they are lost once,
        when the operation waits for the next one: a death before is the same for everybody else.

        Returns:
            whether the operation has this point.
        """
        has_point, loses = await self._kill(operation, point, KEPT)
        if loses:
            await self._kill(operation, point, LOST)
        return has_point

    async def _kill(self, operation: Operation, point: int, manner: str) -> tuple[bool, bool]:
        """Return whether the operation has this point, and whether its writes are to be lost there, too."""
        subject = await operation.prepare(self.life)
        points = await self.life.run(operation.act(self.life, subject), point, every=self.every)
        loses = points.is_dead and self.life.has_pending and (self.every or points.last == FLUSH)
        where = f"{operation.name}, point {point} ({points.last}), {manner}"
        if points.is_dead:
            self.tried.points[operation.name, manner] += 1
            await self.life.bury(keep=manner == KEPT)
            self.life = await Life.begin(self.world.hosts)
        self.life.lead()
        await self.world.settled(self.life, where)
        if points.is_dead and operation.is_call:
            await operation.repeat(self.life, subject)
            await self.world.settled(self.life, f"{where}, after the call was repeated")
        await operation.done(self.life, subject)
        await self.life.rest()
        return points.is_dead, loses

    async def pause(self, operation: Operation, point: int) -> bool:
        """Pause at a point for longer than the leases last, let another life lead meanwhile, and let it continue.

        Returns:
            whether the operation has this point.
        """
        old, subject = self.life, await operation.prepare(self.life)
        points = await old.run(operation.act(old, subject), point, every=self.every, pauses=True)
        if not points.paused.is_set():
            old.lead()
            await self.world.settled(old)
            await operation.done(old, subject)
            await old.rest()
            return False
        where = f"{operation.name}, point {point} ({points.last}), paused"
        self.tried.points[operation.name, PAUSED] += 1
        await self.world.hosts.expire_locks(old.name)
        self.life = await Life.begin(self.world.hosts)
        self.life.lead()
        await self.world.settled(self.life, where)
        await operation.repeat(self.life, subject)
        error = await old.thaw(points)
        await old.end()
        await self.world.settled(self.life, f"{where}, after it continued and ended with {error!r}")
        await operation.done(self.life, subject)
        await self.life.rest()
        return True


async def try_everywhere(
    run_world: Callable[[], AbstractAsyncContextManager[World]],
    tried: Tried,
    *,
    pauses: bool = False,
    every: bool = False,
) -> None:
    """Try all points of all operations, in several clusters.

    Args:
        run_world: runs a cluster.
        tried: where to count.
        pauses: whether to pause at the points instead of killing.
        every: whether each suspension and resumption is a point.
    """
    left, point = [*LOAD_OPERATIONS, *REPLICA_OPERATIONS, *PERMISSION_OPERATIONS], 0
    while left:
        before = tried.total
        async with run_world() as world:
            killer = await Killer.begin(world, tried, every=every)
            while left and tried.total < before + _POINTS_PER_WORLD:
                for make in tuple(left):
                    operation = make(killer.stage)
                    if not await (killer.pause if pauses else killer.kill)(operation, point):
                        left.remove(make)
                point += 1
            await killer.end()
