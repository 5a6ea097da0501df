"""Processes of Alpha that a test kills at an exact point: a node, a client of etcd and Alpha's state for each life.

A life that is armed counts the points of an operation (`support.life_points`). At the chosen point the process ends:
nothing that it would do later happens, its locks stay until their leases end, and of its writes the server has all, or
only those that it has acknowledged.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.life_points import Points, Steps
from support.mortal_parts import MortalNode, RecordingLocks, Wire

from reside.alpha import app
from reside.alpha.lock_access import leadership, root_user
from reside.alpha.loop import Loop
from reside.jazz import fenced_writes
from reside.locks.etcd import Etcd, encode
from reside.locks.gateway import NOT_ENABLED
from reside.replica import ControlBlock
from reside.replica.context import Context
from reside.replica.grants import run_permission_loop
from reside.replica.health import Health
from reside.replica.lifecycle import _publish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    import httpx2

    from reside.alpha.settings import AlphaSettings
    from reside.alpha.state import Alpha
    from reside.common.workqueue import WorkQueue
    from reside.jazz import Credentials
    from reside.locks import EtcdUser, Held
    from reside.replica.declaration import Declaration

ENDPOINT = "http://alpha"


@dataclass
class Hosts:
    """What lives of one Alpha share.

    Attributes:
        settings: Alpha's settings, as its pod has them.
        credentials: Alpha's account.
        network: makes the HTTP transport to etcd of a new life.
        http: the client for calls of peers, which nothing here uses.
        clock: returns ms since the epoch.
        began: how many lives have begun.
        etcd: a client of etcd that ends the locks of the dead.
    """

    settings: AlphaSettings
    credentials: Credentials
    network: Callable[[], httpx2.AsyncBaseTransport]
    http: httpx2.AsyncClient
    clock: Callable[[], int]
    declaration: Declaration = field(default_factory=lambda: app.replica().declaration)
    began: int = 0

    def __post_init__(self) -> None:
        self.etcd = Etcd(self.settings.etcd_hosts, self.root, self.network())

    async def root(self) -> EtcdUser:
        """Return Alpha's user of etcd."""
        return root_user(self.credentials)

    async def forget_users(self) -> None:
        """Make etcd as it was before, so that another Alpha can use it."""
        await self.etcd.gateway.post("/v3/kv/deleterange", {"key": encode("\0"), "range_end": encode("\0")})
        await self.etcd.gateway.post("/v3/auth/disable", {}, accept=[NOT_ENABLED])
        await self.etcd.aclose()

    async def expire_locks(self, holder: str) -> None:
        """End the leases of a dead life, as their time to live does."""
        prefix = f"reside/{self.credentials.account_id}/"
        body = {"key": encode(prefix), "range_end": encode(prefix[:-1] + chr(ord("/") + 1))}
        for key in (await self.etcd.gateway.post("/v3/kv/range", body)).get("kvs", []):
            if key.get("value") == encode(holder) and int(key.get("lease", 0)):
                await self.etcd.revoke(int(key["lease"]))


class Life:
    """One process of Alpha, without its HTTP server.

    Attributes:
        alpha: its state.
        name: the holder of its locks.
        loop: its term, while it leads.
    """

    def __init__(self, hosts: Hosts, alpha: Alpha, wire: Wire, name: str) -> None:
        self.alpha = alpha
        self.name = name
        self.hosts = hosts
        self.loop: Loop | None = None
        self.wire = wire
        self._tasks: list[asyncio.Task[None]] = []
        self._operation: asyncio.Task[None] | None = None

    @property
    def node(self) -> MortalNode:
        """Its node."""
        assert isinstance(self.alpha.node, MortalNode)
        return self.alpha.node

    @property
    def locks(self) -> RecordingLocks:
        """Its locks."""
        assert isinstance(self.alpha.context.locks, RecordingLocks)
        return self.alpha.context.locks

    @classmethod
    async def begin(cls, hosts: Hosts) -> Life:
        """Start a process, as `reside.replica.lifecycle` does."""
        hosts.began += 1
        name, settings = f"life {hosts.began}", hosts.settings
        node = MortalNode(
            settings.sync_server_url, hosts.credentials, clock=hosts.clock, policy=hosts.declaration.writes
        )
        await node.__aenter__()
        await node.login()
        wire = Wire(hosts.network())
        space = hosts.credentials.account_id
        context = Context(
            node=node,
            credentials=hosts.credentials,
            settings=settings,
            health=Health(),
            rcb=await ControlBlock.load(node, settings.control_block_id),
            locks=RecordingLocks(settings.etcd_hosts, space=space, user=hosts.root, holder=name, transport=wire),
            public=node.account.profile.group,
            http=hosts.http,
        )
        await _publish(context, hosts.declaration, ENDPOINT)
        return cls(hosts, await app.running(context), wire, name)

    def lead(self) -> None:
        """Run the leader's loop and the permission loop."""
        self._tasks = [
            asyncio.create_task(self._lead(), name=f"{self.name} leads"),
            asyncio.create_task(run_permission_loop(self.alpha.context, self.hosts.declaration), name="permissions"),
        ]

    async def _lead(self) -> None:
        async def term(held: Held) -> None:
            self.alpha.lease = held
            with fenced_writes(held.check_lease):
                self.loop = Loop(self.alpha)
                try:
                    await self.loop.run()
                finally:
                    self.loop = None

        await leadership(self.alpha).run(term)

    async def idle(self) -> None:
        """Wait until the leader's queues handle nothing and nothing is due."""
        while self.loop is None or any(map(_is_busy, (self.loop._queue, self.loop._requests))):
            for task in self._tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.001)

    async def rest(self) -> None:
        """Stop the loops at whatever they do; what they have written stays."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks, self.loop, self.alpha.lease = [], None, None

    async def run(self, work: Awaitable[Any], at: int, *, every: bool = False, pauses: bool = False) -> Points:
        """Run an operation up to its point with this number, and end or pause there; return its points.

        The points are before each write, each request to etcd and each wait for an acknowledgement, and after the last
        one; with `every`, at each suspension and resumption, too.
        """
        points = self.node.points = self.wire.points = Points(at, self._cut, every=every, pauses=pauses)
        self.node.gate.is_closed = True
        self._operation = asyncio.create_task(_to_the_end(Steps(work, points), points), name="operation")
        paused = asyncio.create_task(points.paused.wait())
        await asyncio.wait([self._operation, paused], return_when=asyncio.FIRST_COMPLETED)
        paused.cancel()
        if points.paused.is_set():
            return points
        self.node.points = self.wire.points = None
        if not points.is_dead:
            self.node.gate.open()
            self._operation.result()
        else:
            self._operation.exception()  # the death, perhaps in a group of a library's own
        return points

    async def thaw(self, points: Points) -> BaseException | None:
        """Let a paused life continue after its leases have ended, and return how its operation ends; None: well."""
        for held in self.locks.taken:
            held._renewed_at -= held._ttl
        self.node.points = self.wire.points = None
        self.node.gate.open()
        points.thawed.set()
        assert self._operation is not None
        await asyncio.wait([self._operation])
        return self._operation.exception()

    @property
    def has_pending(self) -> bool:
        """Whether the server has not acknowledged all of its writes."""
        return self.node.statistics.unacknowledged > 0

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Pass no points while the block is open: it waits for others."""
        points = self.node.points
        if points is not None:
            points.is_counting = False
        try:
            yield
        finally:
            if points is not None:
                points.is_counting = True

    def _cut(self) -> None:
        self.wire.is_cut = self.node.gate.is_closed = True

    async def bury(self, *, keep: bool) -> None:
        """Remove a dead life: deliver its writes or lose those that were not acknowledged, then end its locks."""
        if keep:
            self.node._runtime._exchange._fences.clear()  # they were on their way
            self.node.gate.open()
            self.node._host.writer.send()
            await self.node.catch_up()  # the server answers in order
        else:
            self.node.gate.drop()
        await self.end()
        await self.hosts.expire_locks(self.name)

    async def freeze(self) -> None:
        """Pause the life at whatever it does, for longer than its leases last."""
        self.wire.is_free.clear()
        self.node.gate.is_closed = True
        for held in self.locks.taken:
            held._renewed_at -= held._ttl
        await self.hosts.expire_locks(self.name)

    def wake(self) -> None:
        """Let a frozen life continue; it has not noticed that its leases have ended."""
        self.wire.is_free.set()
        self.node.gate.open()

    async def die(self, *, keep: bool) -> None:
        """End the process at whatever it does; its writes are delivered or lost, and its locks end."""
        if keep:
            self.node._host.writer.send()
            await asyncio.sleep(0)
        self.wire.is_cut = True
        self.wire.is_free.set()
        await self.end()
        await self.hosts.expire_locks(self.name)

    @property
    def is_over(self) -> bool:
        """Whether its node has ended, and with it the process."""
        return self.node._runtime._end is not None

    async def end(self) -> None:
        """Close the connections."""
        self.alpha.context.rcb.close()
        await self.node.close()
        await self.rest()
        await self.alpha.context.locks.aclose()


async def _to_the_end(steps: Any, points: Points) -> None:
    await steps
    points.pass_by("end")


def _is_busy(queue: WorkQueue) -> bool:
    found = queue.statistics()
    return found.running > 0 or found.oldest_s > 0
