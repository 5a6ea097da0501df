"""Random interleavings of calls on two Alphas that lead in turns, and of their deaths and pauses.

An interleaving is a few steps. Each starts on one of the two Alphas while the earlier ones still run, some turns of the
event loop later. Afterwards nobody does anything: the leader finishes, and the state must be one that is possible, and
the one that the answers of the calls have promised.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.alpha_lives import Life
from support.alpha_world import GREETING

from reside.alpha import records
from reside.alpha.granting import decide
from reside.alpha.loading.approve import approve, reject
from reside.alpha.managing import deletion
from reside.alpha.managing.configure import set_enabled
from reside.jazz import JazzError
from reside.locks import LockError
from reside.model.alpha_contract import READ_REPLICAS
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID
from reside.model.errors import ResideError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from support.alpha_world import World
    from support.cluster_picture import Picture

KINDS = {
    "load": 3,
    "update": 1,
    "approve": 7,
    "reject": 4,
    "rollback": 1,
    "disable": 3,
    "enable": 2,
    "delete": 2,
    "grant": 4,
    "revoke": 4,
    "hand over": 2,
    "crash, kept": 1,
    "crash, lost": 1,
    "pause": 1,
}
"""The kinds of steps, and how often they are drawn."""
PAUSES = (0, 0, 1, 2, 5, 10, 20, 50, 100)
"""Turns of the event loop before the next step."""
_WORKERS = 3


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        kind: one of `KINDS`.
        alpha: which of the two Alphas it concerns.
        choice: selects what it is about, from 0 to 1; the screens of 0 are the oldest.
        turns: turns of the event loop before the next step.
    """

    kind: str
    alpha: int
    choice: float
    turns: int

    def __str__(self) -> str:
        return f"{self.kind} (Alpha {self.alpha}, {self.choice:.2f}, {self.turns} turns)"


def draw(random: Random) -> list[Step]:
    """Return the steps of an interleaving."""
    kinds = random.choices(list(KINDS), weights=list(KINDS.values()), k=random.randint(4, 6))
    return [Step(kind, random.randint(0, 1), random.random(), random.choice(PAUSES)) for kind in kinds]


@dataclass
class Answers:
    """What calls have promised in one interleaving."""

    approved: Counter[int] = field(default_factory=Counter)
    rejected: Counter[int] = field(default_factory=Counter)
    deleted: set[int] = field(default_factory=set)
    enabled: dict[int, set[bool]] = field(default_factory=dict)
    granted: dict[str, set[str]] = field(default_factory=dict)


class Pair:
    """Two Alphas of one cluster.

    Attributes:
        world: the cluster.
        counts: how many calls succeeded, and how many were refused, by kind.
    """

    def __init__(self, world: World, counts: Counter[str]) -> None:
        self.world = world
        self.counts = counts
        self.lives: list[Life] = []
        self._screens: list[tuple[int, str]] = []
        self._existing: dict[int, int | None] = {}
        """Request on a screen → the replica that it updates; a finished request may be deleted."""
        self._greeter = 0
        self._answers = Answers()
        self._calls: list[tuple[Step, Life, asyncio.Task[None]]] = []
        self._frozen: list[Life] = []
        self._paused: set[Life] = set()
        self._dead: set[Life] = set()
        self._last: Picture | None = None

    async def begin(self) -> None:
        """Begin both lives, and load a greeter and workers."""
        self.lives = [await Life.begin(self.world.hosts) for _ in range(2)]
        for life in self.lives:
            life.lead()
        leader = await self._leader()
        self._greeter = (await self.world.loaded(leader, "greeter:v1")).id
        for _ in range(_WORKERS):
            await self.world.loaded(leader, "worker:v1", name=self.world.new_name())
        self._last = await self.world.settled(leader)

    async def end(self) -> None:
        """End both lives."""
        for life in self.lives:
            await life.end()

    async def play(self, steps: list[Step]) -> None:
        """Run an interleaving, and check what has become of it."""
        self._answers, self._calls = Answers(), []
        self._paused, self._dead = set(), set()
        for step in steps:
            await self._start(step)
            for _ in range(step.turns):
                await asyncio.sleep(0)
        for life in self._frozen:
            life.wake()
        await self._collect()
        await self._revive()
        leader = await self._leader()
        self._last = await self.world.settled(leader, whole=False)
        await self._check(leader)
        self._screens += [
            (seen.value.id, str(seen.value.revision))
            for seen in self._last.requests
            if seen.value.status == "requires-approval"
        ]
        self._screens = list(dict.fromkeys(self._screens))[-12:]
        known = self._existing | {seen.value.id: seen.value.existing_replica for seen in self._last.requests}
        self._existing = {number: known.get(number) for number, _ in self._screens}

    # Steps

    async def _start(self, step: Step) -> None:
        life = self.lives[step.alpha]
        if step.kind.startswith("crash"):
            await self._crash(step)
        elif step.kind == "pause":
            if life not in self._frozen and len(self._frozen) == 0:
                self._paused.add(life)
                self._frozen.append(life)
                await life.freeze()
        elif step.kind == "hand over":
            leader = next((other for other in self.lives if other.loop is not None), None)
            if leader is not None and leader not in self._frozen:
                await leader.rest()
                leader.lead()
        else:
            call = self._call(step, life)
            if call is not None:
                self._calls.append((step, life, asyncio.create_task(call, name=str(step))))

    async def _crash(self, step: Step) -> None:
        life = self.lives[step.alpha]
        if life in self._frozen:
            self._frozen.remove(life)
        self._dead.add(life)
        keep = step.kind == "crash, kept"
        life.node.gate.is_closed = not keep
        for _ in range(step.turns):
            await asyncio.sleep(0)
        await life.die(keep=keep)
        for _, other, task in self._calls:
            if other is life:
                task.cancel()
        self.lives[step.alpha] = await Life.begin(self.world.hosts)
        self.lives[step.alpha].lead()

    def _call(self, step: Step, life: Life) -> Awaitable[None] | None:
        acts: dict[str, Callable[[Step, Life], Awaitable[None] | None]] = {
            "load": self._load,
            "update": self._update,
            "rollback": self._rollback,
            "approve": self._decide_on_request,
            "reject": self._decide_on_request,
            "disable": self._enable,
            "enable": self._enable,
            "delete": self._delete,
            "grant": self._decide_on_permission,
            "revoke": self._decide_on_permission,
        }
        return acts[step.kind](step, life)

    async def _load(self, step: Step, life: Life) -> None:
        name = self.world.new_name() if step.choice > 0.2 else "worker"
        await self.world.created(life, "worker:v1", name=name)

    def _worker(self, step: Step) -> Any:
        assert self._last is not None
        workers = [seen.value for seen in self._last.replicas if seen.value.id != self._greeter]
        return workers[int(step.choice * len(workers))] if workers else None

    def _update(self, step: Step, life: Life) -> Awaitable[None] | None:
        worker = self._worker(step)
        return None if worker is None else self._create(life, f"worker:v{2 + worker.id % 2}", worker.id)

    def _rollback(self, step: Step, life: Life) -> Awaitable[None] | None:
        worker = self._worker(step)
        return None if worker is None else self._create(life, f"worker@{worker.versions[0].digest}", worker.id)

    async def _create(self, life: Life, image: str, replica: int) -> None:
        await self.world.created(life, image, replicaId=replica)

    def _decide_on_request(self, step: Step, life: Life) -> Awaitable[None] | None:
        if not self._screens:
            return None
        number, revision = self._screens[int(step.choice**0.5 * len(self._screens))]
        return self._approve(life, number, revision) if step.kind == "approve" else self._reject(life, number)

    async def _approve(self, life: Life, number: int, revision: str) -> None:
        await approve(life.alpha, number, revision, {})
        self._answers.approved[number] += 1

    async def _reject(self, life: Life, number: int) -> None:
        await reject(life.alpha, number, "not wanted")
        self._answers.rejected[number] += 1

    def _enable(self, step: Step, life: Life) -> Awaitable[None] | None:
        worker = self._worker(step)
        return None if worker is None else self._set_enabled(life, worker.id, enabled=step.kind == "enable")

    async def _set_enabled(self, life: Life, number: int, *, enabled: bool) -> None:
        self._answers.enabled.setdefault(number, set()).add(enabled)
        await set_enabled(life.alpha, number, self.world.client.account_id, enabled=enabled, is_manager=True)

    def _delete(self, step: Step, life: Life) -> Awaitable[None] | None:
        worker = self._worker(step)
        return None if worker is None else self._order_deletion(life, worker.id)

    async def _order_deletion(self, life: Life, number: int) -> None:
        seen = await deletion.preview(life.alpha, number)
        await deletion.delete(life.alpha, number, seen.revision, self.world.client.account_id, force=False)
        self._answers.deleted.add(number)

    async def _decide_on_permission(self, step: Step, life: Life) -> None:
        account, act = self.world.client.account_id, decide.grant if step.kind == "grant" else decide.revoke
        of_alpha = decide.Order(account, ALPHA_ID, ALPHA_CONTRACT, READ_REPLICAS)
        order = of_alpha if step.choice < 0.5 else decide.Order(account, self._greeter, GREETING, "wave")
        self._answers.granted.setdefault(order.permission, set()).add(step.kind)
        await act(life.alpha, order, account, "test")

    # The end

    async def _collect(self) -> None:
        """Wait for all calls: each succeeds or is refused, unless its Alpha died or was paused."""
        async with asyncio.timeout(60):
            await asyncio.gather(*(task for _, _, task in self._calls), return_exceptions=True)
        for step, life, task in self._calls:
            error = None if task.cancelled() else task.exception()
            harmless = (ResideError, LockError, JazzError) if life in self._paused else ResideError
            if error is not None and life not in self._dead and not isinstance(error, harmless):
                raise AssertionError(f"{step} failed: {type(error).__name__}: {error}") from error
            self.counts[f"{step.kind}: {'done' if error is None else type(error).__name__}"] += 1

    async def _revive(self) -> None:
        """Restart what Kubernetes restarts: an Alpha whose node has ended; let a paused one notice what it has lost."""
        for number, life in enumerate(self.lives):
            if life.is_over:
                self.counts["ended instead of sending too late"] += 1
                await life.end()
                await self.world.hosts.expire_locks(life.name)
                self.lives[number] = await Life.begin(self.world.hosts)
                self.lives[number].lead()
            elif life in self._frozen:
                await life.rest()
                life.lead()
        self._frozen = []

    async def _leader(self) -> Life:
        async with asyncio.timeout(60):
            while True:
                for life in self.lives:
                    if life.loop is not None:
                        return life
                await asyncio.sleep(0.001)

    async def _check(self, leader: Life) -> None:
        """Check what the calls have promised."""
        answers = self._answers
        for number in answers.approved.keys() | answers.rejected.keys():
            try:
                request = (await records.find_request(leader.alpha.data, number)).value
            except records.RequestGone:
                continue
            promised = {"approved", "invalid"} if answers.approved[number] else {"rejected"}
            assert answers.approved[number] + answers.rejected[number] == 1, f"request {number} was decided twice"
            assert request.status in promised, f"request {number} is {request.status}, and was {promised}"
        for number in answers.deleted:
            assert await records.find_replica(leader.alpha.data, number) is None, f"replica {number} is still there"
        for number, wanted in answers.enabled.items():
            found = await records.find_replica(leader.alpha.data, number)
            if (
                found is not None
                and len(wanted) == 1
                and not self._paused | self._dead
                and number not in self._updated()
            ):
                assert found.value.management.enabled in wanted, f"replica {number} is not {wanted}"

    def _updated(self) -> set[int]:
        """Return the replicas that an approved request has updated, which enables them."""
        return {self._existing[number] or 0 for number, count in self._answers.approved.items() if count}
