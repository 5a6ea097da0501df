"""Processes of Alpha that a test kills at an exact point: a node, a client of etcd and Alpha's state for each life.

A life that is armed counts the points of an operation: before each write, at each suspension (what it awaits may happen
or not) and at each resumption (it has happened). At the chosen point the process ends: nothing that it would do later
happens, its locks stay until their leases end, and of its writes the server has all, or only those that it has
acknowledged.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import httpx2

from reside.alpha import app
from reside.alpha.lock_access import leadership, root_user
from reside.alpha.loop import Loop
from reside.jazz import Node, fenced_writes
from reside.locks import LockService
from reside.locks.etcd import Etcd, encode
from reside.locks.gateway import NOT_ENABLED
from reside.replica import ControlBlock
from reside.replica.context import Context
from reside.replica.grants import run_permission_loop
from reside.replica.health import Health
from reside.replica.lifecycle import _publish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator

    from reside.alpha.settings import AlphaSettings
    from reside.alpha.state import Alpha
    from reside.common.workqueue import WorkQueue
    from reside.jazz import Credentials
    from reside.jazz.memory.covalue import Core
    from reside.jazz.sync.known_state import KnownState
    from reside.locks import EtcdUser, Held
    from reside.replica.declaration import Declaration

T = TypeVar("T")
ENDPOINT = "http://alpha"
FLUSH = "flush"
"""The point at which a life waits for the acknowledgement of its writes."""


class Death(BaseException):
    """The simulated end of the process."""


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


class Wire(httpx2.AsyncBaseTransport):
    """The connection to etcd, which can be cut."""

    def __init__(self, network: httpx2.AsyncBaseTransport) -> None:
        self._network = network
        self.is_cut = False
        self.is_free = asyncio.Event()
        self.is_free.set()
        self.points: Points | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Pass a request on unless the wire is cut."""
        points = self.points
        if points is not None and not points.is_dead and _is_point(request, points):
            await points.reach(f"request {request.url.path}")
        if self.is_cut:
            raise httpx2.ConnectError("the process is dead")
        await self.is_free.wait()
        return await self._network.handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._network.aclose()


class RecordingLocks(LockService):
    """Locks that remember which were taken."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.taken: list[Held] = []

    async def _acquire(self, key: str, ttl: int, wait: float | None) -> Held:
        held = await super()._acquire(key, ttl, wait)
        self.taken.append(held)
        return held


class Gate:
    """Holds back the content that a node sends: a write reaches the server only when the node waits for it."""

    def __init__(self, node: Node) -> None:
        self._sync = node._runtime._servers.connections[0].sync
        self._send = self._sync._send_delta
        self._sync._send_delta = self._hold  # type: ignore[method-assign]
        self._held: dict[str, Core] = {}
        self.is_closed = False

    def open(self) -> None:
        """Send what was held back, and hold back nothing from now on."""
        self.is_closed = False
        held, self._held = self._held, {}
        for core in held.values():
            self._sync.push(core)

    def drop(self) -> None:
        """Lose what was held back."""
        self._held.clear()

    def _hold(self, core: Core, known: KnownState) -> bool:
        if not self.is_closed:
            return self._send(core, known)
        self._held[core.co_id] = core
        return False


class MortalNode(Node):
    """A node whose writes a life counts."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.gate = Gate(self)
        self.points: Points | None = None
        writer = self._host.writer
        for name in ("create", "_append"):
            setattr(writer, name, partial(self._counted, getattr(writer, name)))

    def _counted(self, write: Callable[..., T], *arguments: Any, **options: Any) -> T:
        if self.points is not None and not self.points.pauses:
            self.points.pass_by("write")
        return write(*arguments, **options)

    async def flush(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - as Node.flush
        """Wait until the server acknowledged everything written; a life may die before anything is sent."""
        if self.points is None:
            return await super().flush(timeout=timeout)
        await self.points.reach(FLUSH)
        self.gate.open()
        await super().flush(timeout=timeout)
        self.gate.is_closed = self.points is not None
        return None


class Points:
    """Counts the points of an operation, and ends the life at one of them.

    Args:
        at: the number of points to pass before.
        die: called at the end of the life.
        every: whether each suspension and resumption is a point, too.
        pauses: whether the life is paused at the point instead of ended. Then only waits for an acknowledgement are
            points, and with `every` suspensions and requests.

    Attributes:
        last: the point that was passed last.
        is_dead: whether the life has ended.
        is_counting: whether points are passed; otherwise the operation waits for others.
        paused: set when the life is paused.
        thawed: set by the test to continue it.
    """

    def __init__(self, at: int, die: Callable[[], None], *, every: bool = False, pauses: bool = False) -> None:
        self._left = at
        self._die = die
        self.every = every
        self.pauses = pauses
        self.paused = asyncio.Event()
        self.thawed = asyncio.Event()
        self.last = ""
        self.is_dead = False
        self.is_counting = True

    def pass_by(self, what: str) -> None:
        """Pass a point.

        Raises:
            Death: it is the chosen one, or the life has ended.
        """
        if not self.is_dead:
            if not self.is_counting:
                return
            self.last = what
            self._left -= 1
            if self._left >= 0 or self.paused.is_set():
                return
            if self.pauses:
                self.paused.set()
                return
            self.is_dead = True
            self._die()
        raise Death

    async def reach(self, what: str) -> None:
        """Pass a point at which the life can be paused."""
        self.pass_by(what)
        if self.paused.is_set():
            await self.thawed.wait()


class Steps:
    """An awaitable that runs a coroutine, and passes a point at each of its suspensions and resumptions."""

    def __init__(self, work: Awaitable[T], points: Points) -> None:
        self._work = work
        self._points = points

    def __await__(self) -> Generator[Any, Any, Any]:
        """Forward what the coroutine awaits."""
        steps: Any = self._work.__await__()
        error: BaseException | None = None
        while True:
            try:
                awaited = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as done:
                return done.value
            error = self._passed("suspension")
            if error is not None:
                continue
            try:
                yield awaited
            except BaseException as raised:  # noqa: BLE001 - forwarded to the coroutine
                error = raised
            else:
                error = self._passed("resumption")

    def _passed(self, what: str) -> Death | None:
        """Pass a point; return the death, once. What a dead coroutine awaits while it unwinds is no point."""
        if self._points.every and not self._points.is_dead:
            try:
                self._points.pass_by(what)
            except Death as death:
                return death
        return None


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


def _is_point(request: httpx2.Request, points: Points) -> bool:
    """Return whether a request to etcd is a point: those that take or release a lock are, others change nothing."""
    changes = request.url.path == "/v3/lease/revoke" or b"requestPut" in request.content
    return points.every or (changes and not points.pauses)


def _is_busy(queue: WorkQueue) -> bool:
    found = queue.statistics()
    return found.running > 0 or found.oldest_s > 0
