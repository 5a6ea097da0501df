"""The runtime of a node: its connections, local store and memory, and the events between them.

Everything happens on one event loop. Changes made in one turn of the loop are processed once, in the next turn: writes
are saved and sent, watchers are woken and the writes they make are sent as well, and unused values are evicted.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from reside.jazz.disk import RestoringInParts, StorePersistence
from reside.jazz.errors import (
    InvalidArgument,
    InvalidCredentials,
    JazzError,
    NodeClosed,
    StoreFailed,
)
from reside.jazz.events.turn import Turn
from reside.jazz.events.waiters import Waiters
from reside.jazz.events.watch import Watches
from reside.jazz.groups.account import Credentials
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.eviction import evictable
from reside.jazz.memory.store import Store
from reside.jazz.node.host import NodeHost
from reside.jazz.node.statistics import Statistics
from reside.jazz.operations.flusher import Flusher
from reside.jazz.operations.loader import Loader
from reside.jazz.operations.writer import Writer
from reside.jazz.removals import WriteGuard, WritePolicy
from reside.jazz.sync import Exchange, Servers, proven_address
from reside.jazz.wire.crypto import Agent
from reside.jazz.wire.header import account_header

if TYPE_CHECKING:
    from reside.jazz.disk.database import SqliteStore
    from reside.jazz.ids import CoId

_EVICT_BEYOND: Final = 512
"""Unused values are evicted only if more values than this are in memory."""
_EVICT_SHARE: Final = 16
"""Of many values, they are evicted when this part of the number that was kept last has come."""
_DELETED, _DELETED_SHARE = 16, 64
"""Values that this node deleted are evicted once they are so many, and such a part of all: nobody reads them again."""


class Runtime:
    """The connections, the local store, the memory and the events of one node; see `Node` for the arguments.

    Attributes:
        account_header: the header of the account's value.
        guard: applies the policy; None if there is no policy.
        host: the part of the node that its values use.
    """

    def __init__(
        self,
        urls: Sequence[str],
        credentials: Credentials,
        *,
        store: "SqliteStore | None",
        clock: Callable[[], int],
        connect_timeout: float,
        policy: WritePolicy | None,
        prove_account: bool,
    ) -> None:
        if not urls:
            raise InvalidArgument("a node needs a sync server: pass its URL")
        agent = Agent.from_secret(credentials.agent_secret)
        self.account_header = account_header(agent.agent_id)
        if str(self.account_header.co_id) != credentials.account_id:
            raise InvalidCredentials(f"the agent secret belongs to another account than {credentials.account_id}")
        self._connect_timeout = connect_timeout
        self._store = Store(agent, credentials.account_id, self._changed)
        self.guard = None if policy is None else WriteGuard(self._store, policy, clock)
        self._store.guard = self.guard
        self._watches = Watches()
        self._turn = Turn(self._end_turn)
        self._exchange = Exchange(self._store, on_acknowledged=self._acknowledged, on_too_late=self._too_late)
        self._servers = Servers(
            urls,
            self._exchange,
            on_queued=self._turn.schedule,
            proven=(lambda url: proven_address(url, agent, credentials.account_id, clock())) if prove_account else None,
        )
        self._writer = Writer(self._store, self._exchange, clock, self.check_open, self._turn.schedule)
        self._persistence = self._persist_in(store)
        self._waiters = Waiters(self.check_open)
        self._loader = Loader(self._store, self._exchange, self._servers, self._waiters)
        self._flusher = Flusher(self._writer, self._exchange, self._servers, self._waiters)
        self.host = NodeHost(
            credentials.account_id,
            store=self._store,
            watches=self._watches,
            writer=self._writer,
            loader=self._loader,
            flusher=self._flusher,
            clock=clock,
            check_open=self.check_open,
        )
        self._unsaved = False
        self._ended = asyncio.Event()
        self._evict_beyond = _EVICT_BEYOND
        self._deleted: set[CoId] = set()
        """Values that this node deleted since the last eviction, and whose deletion the servers have."""
        self._runner: asyncio.Task[None] | None = None
        self._opened = False
        self._end: JazzError | None = NodeClosed("the node is not open; use `async with Node(…)`")

    async def open(self) -> None:
        """Open the local store and wait for the first connection.

        Raises:
            JazzUnavailable: there was no connection within `connect_timeout`.
            NodeClosed: the node was opened before.
            StoreFailed: the file of the local store can't be used.
        """
        if self._opened:
            raise NodeClosed("a node can be opened only once; create a new one")
        self._opened = True
        if self._persistence is not None:
            await self._open_store(self._persistence)
        self._end = None
        self._runner = asyncio.create_task(self._servers.run(), name=f"jazz {self.host.account_id}")
        self._runner.add_done_callback(self._runner_ended)
        try:
            await self._servers.wait_connected(self._connect_timeout)
            self.check_open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection. Every pending operation raises `NodeClosed`.

        Unflushed writes are lost, unless a local store keeps them: then the next node sends them.
        """
        runner, self._runner = self._runner, None
        if runner is not None:
            runner.cancel()
            await asyncio.wait([runner])
        self._finish(NodeClosed("the node was closed; create a new one"))

    def check_open(self) -> None:
        """Raise an error if the node is not open.

        Raises:
            NodeClosed: it was closed, or never opened.
            JazzError: the error that ended it.
        """
        if self._end is not None:
            raise self._end

    async def until_closed(self) -> NoReturn:
        """Wait until the node ends, and raise its error; see `Node.until_closed`."""
        await self._ended.wait()
        self.check_open()
        raise AssertionError("a node that has ended is not open")

    async def until_reconnected(self) -> None:
        """Wait for the next connection to a server; see `Node.until_reconnected`."""
        self.check_open()
        await self._servers.until_reconnected()

    @property
    def connected(self) -> bool:
        """Whether the node is connected; if not, writes wait for the next connection."""
        return self._end is None and self._servers.connected

    @property
    def statistics(self) -> Statistics:
        """Current figures about the node."""
        return Statistics(
            len(self._store.cores),
            self._watches.count,
            self._exchange.loads_in_flight,
            self._servers.buffered,
            len(self._exchange.unacknowledged),
            self._exchange.rejected_sessions,
        )

    async def catch_up(self, small: Core, timeout: float) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait for one round trip to the server; see `Node.catch_up`."""
        await self._loader.catch_up(small, timeout)

    async def flush(self, timeout: float) -> None:  # noqa: ASYNC109 - raises our own error
        """Wait until the server acknowledged everything written here; see `Node.flush`."""
        self.check_open()
        if self.guard is not None:
            self.guard.flush()
        await self._flusher.flush(timeout)

    async def drain(self) -> None:
        """Wait while more than 100 kB are queued to be sent; see `Node.drain`."""
        self.check_open()
        self._writer.send()
        await self._servers.room()

    async def _open_store(self, persistence: StorePersistence) -> None:
        opening = asyncio.ensure_future(asyncio.to_thread(persistence.open_file))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            await asyncio.wait([opening])  # the thread can't be interrupted
            persistence.close(save=False)
            raise
        for core in persistence.open():
            self._exchange.unacknowledged[core.co_id] = None

    def _persist_in(self, disk: "SqliteStore | None") -> StorePersistence | None:
        if disk is None:
            return None
        persistence = StorePersistence(
            disk,
            self._store,
            self._writer.send,
            self._exchange.unacknowledged,
            self._exchange.own_sessions,
            parts=RestoringInParts(self._exchange.request, self._finish),
        )
        self._store.restore = persistence.restore
        return persistence

    def _schedule_save(self, core: Core) -> None:
        if self._persistence is not None and self._end is None:
            self._persistence.mark(core)
            self._unsaved = True
            self._turn.schedule()

    def _end_turn(self) -> None:
        self._exchange.ask_for_skipped()
        self._send_written()  # first, since remote readers wait longer than local watchers
        if self._watches.wake():
            self._send_written()
        if self._has_too_many:
            self._evict()
        elif self._has_many_deleted:
            self._evict_deleted()

    def _send_written(self) -> None:
        self._writer.send_due()
        if self._unsaved:
            self._save()  # also signs and queues the transactions that the local store needs
        self._servers.flush_due()

    def _save(self) -> None:
        self._unsaved = False
        if self._persistence is not None and self._end is None:
            try:
                self._persistence.save()
            except StoreFailed as error:
                self._finish(error)

    @property
    def _has_too_many(self) -> bool:
        """Whether to evict unused values: enough have come since the last eviction."""
        return len(self._store.cores) > self._evict_beyond

    def _evict(self) -> None:
        self._save()
        self._drop(self._unused())
        kept = len(self._store.cores)
        self._evict_beyond = max(_EVICT_BEYOND, kept + min(kept, max(_EVICT_BEYOND, kept // _EVICT_SHARE)))

    @property
    def _has_many_deleted(self) -> bool:
        return len(self._deleted) >= max(_DELETED, len(self._store.cores) // _DELETED_SHARE)

    def _evict_deleted(self) -> None:
        """Evict the values that this node deleted; those that the program still refers to stay until `_evict`."""
        self._save()
        for co_id in self._deleted:
            self.host.objects.let_go(co_id)
        self._drop([core for core in self._unused() if core.deleted])
        self._deleted.clear()

    def _unused(self) -> list[Core]:
        held = {self.host.account_id, *self.host.objects.held(), *self._loader.loading, *self._waiters.awaited_ids()}
        return evictable(self._store, held | self._exchange.unacknowledged.keys())

    def _drop(self, evicted: list[Core]) -> None:
        self._store.drop(evicted)
        for core in evicted:
            self._exchange.forget(core)

    def _changed(self, core: Core) -> None:
        self._schedule_save(core)
        self._waiters.changed(core)
        if self._watches.mark(core.co_id) or self._has_too_many:
            self._turn.schedule()

    def _acknowledged(self, core: Core) -> None:
        self._waiters.acknowledged(core)
        self._schedule_save(core)
        if core.deleted:
            self._deleted.add(core.co_id)
            self._turn.schedule()

    def _runner_ended(self, runner: asyncio.Task[None]) -> None:
        if runner.cancelled():
            return
        error = runner.exception()
        if isinstance(error, JazzError):
            self._finish(error)
        elif error is not None:
            closed = NodeClosed(f"the connection task failed: {type(error).__name__}: {error}")
            closed.__cause__ = error
            self._finish(closed)

    def _too_late(self, error: Exception) -> None:
        """End the node, because it has written what a fence does not let it send any more."""
        closed = NodeClosed(f"writes were not sent in time: {error}; the node is closed, start again with a new one")
        closed.__cause__ = error
        self._finish(closed)

    def _finish(self, end: JazzError) -> None:
        """End the node: every pending operation raises `end`."""
        if self._end is None:
            self._end = end
        self._ended.set()
        if self.guard is not None:
            self.guard.close()
        self._servers.end(self._end)
        self._waiters.end(self._end)
        self._watches.close(self._end)
        persistence, self._persistence = self._persistence, None
        if persistence is not None:
            persistence.close(save=not isinstance(self._end, StoreFailed))
