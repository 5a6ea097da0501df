"""What a node exchanges with all of its sync servers.

A node loads a value from every server, and the first complete answer makes it available. What the node writes, and what
arrives from one server, is sent to the others. A write is acknowledged once every server has it. A value is absent once
every connected server has answered that it does not have it.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from reside.jazz.ids import SessionId, is_delete_session
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.sync.interfaces import Send
from reside.jazz.sync.protocol import Sync
from reside.jazz.sync.receiver import BatchReceiver
from reside.jazz.wire.session import SessionLog


class Exchange:
    """The protocol states of one node, one for each server; it is the `SyncHost` of all of them.

    Args:
        store: the values.
        on_acknowledged: called with an unacknowledged value of which the servers acknowledged more.
        on_too_late: called with the error of a fence that refuses what was written to a value and not sent yet.

    Attributes:
        own_sessions: the sessions that this node writes.
        unacknowledged: the values with writes that some server has not acknowledged, by id, in the order of writing.
        receiver: verifies batches and adds them to the logs.
    """

    def __init__(
        self, store: Store, *, on_acknowledged: Callable[[Core], None], on_too_late: Callable[[Exception], None]
    ) -> None:
        self._store = store
        self._on_acknowledged = on_acknowledged
        self._on_too_late = on_too_late
        self._fences: dict[str, dict[Callable[[], None], None]] = {}
        self._syncs: Final[list[Sync]] = []
        self.own_sessions: set[str] = set()
        self.unacknowledged: dict[str, None] = {}
        self.receiver = BatchReceiver(store, self.request)

    def add(self, send: Send, send_later: Callable[[str], None], *, on_full_load: Callable[[Core], None]) -> Sync:
        """Add a server; see `Sync` for the arguments."""
        sync = Sync(self._store, self, send, send_later, on_full_load=on_full_load)
        self._syncs.append(sync)
        return sync

    @property
    def connected(self) -> bool:
        """Whether there is a connection to a server."""
        return any(sync.connected for sync in self._syncs)

    @property
    def loads_in_flight(self) -> int:
        """The number of loads that are not answered, of all servers."""
        return sum(sync.loads_in_flight for sync in self._syncs)

    @property
    def rejected_sessions(self) -> int:
        """The number of sessions that violated the protocol."""
        return self.receiver.rejected_sessions

    def disconnected(self, sync: Sync) -> None:
        """Note that a connection has ended; with the last one, batches that were deferred are dropped."""
        if not self.connected:
            self.receiver.reset()
            for core in self._store.cores.values():
                core.forget_connection()
            return
        for core in self._store.cores.values():
            core.rejected = {key: item for key, item in core.rejected.items() if item.source is not sync}

    def request(self, core: Core, *, again: bool = False) -> None:
        """Request a value from every connected server; see `Sync.request`."""
        for sync in self._syncs:
            sync.request(core, again=again)

    def fence(self, core: Core, checks: Iterable[Callable[[], None]]) -> None:
        """Note the checks of what was written to a value; they apply until all servers have acknowledged it."""
        self._fences.setdefault(core.co_id, {}).update(dict.fromkeys(checks))

    def may_send(self, core: Core) -> bool:
        """Return whether what was written here to a value may still be sent; if not, the node ends."""
        try:
            for check in self._fences.get(core.co_id, ()):
                check()
        except Exception as error:  # noqa: BLE001 - whatever a fence raises
            self._on_too_late(error)
            return False
        return True

    def check_of(self, core: Core) -> Callable[[], bool] | None:
        """Return a function that calls `may_send` for a value; None if no fence applies to what was written to it."""
        return partial(self.may_send, core) if core.co_id in self._fences else None

    def forget(self, core: Core) -> None:
        """Drop the records of a value that is evicted."""
        for sync in self._syncs:
            sync.forget(core)
        self.receiver.forget(core)
        self.own_sessions -= {session for session in core.sessions if is_delete_session(session)}
        if core.session is not None:
            self.own_sessions.discard(core.session)

    def created(self, core: Core) -> None:
        """Note that a value was created here, so no server can have it."""
        for sync in self._syncs:
            sync.created(core)

    def push(self, core: Core) -> None:
        """Sign what was written to a value, and send each server what it is missing."""
        self.sign(core)
        for sync in self._syncs:
            sync.push(core)

    def ask_for_skipped(self) -> None:
        """Ask for the sessions that were skipped and whose authors have a role now."""
        for core in self.receiver.release_skipped():
            if self._store.cores.get(core.co_id) is core:
                for sync in self._syncs:
                    sync.ask_later(core)

    def unacknowledged_logs(self, co_id: str) -> tuple[Core, list[tuple[SessionLog, int]]]:
        """Return the logs of a value that this node writes, each with its current length."""
        core = self._store.core(co_id)
        return core, [(log, len(log.transactions)) for log in self._own_logs(core)]

    def sign(self, core: Core) -> None:
        """Sign what this node wrote to a value."""
        for log in self._own_logs(core):
            log.sign(self._store.agent)

    def confirmed(self, core: Core) -> None:
        """Note that a server confirmed more of a value: what all servers have is acknowledged."""
        if not core.header_acknowledged:
            core.header_acknowledged = all(sync.has_header(core) for sync in self._syncs)
        logs = self._own_logs(core)
        for log in logs:
            log.acknowledged = max(log.acknowledged, min(sync.acknowledged(core, log.session) for sync in self._syncs))
        if core.co_id in self.unacknowledged:
            if core.header_acknowledged and all(log.acknowledged >= len(log.transactions) for log in logs):
                del self.unacknowledged[core.co_id]
                self._fences.pop(core.co_id, None)
            self._on_acknowledged(core)

    def lacks(self, core: Core) -> None:
        """Note that a server does not have a value whose header is missing here; it is absent if none has it."""
        connected = [sync for sync in self._syncs if sync.connected]
        if connected and all(sync.is_without(core) for sync in connected):
            core.absent = True
            self._store.changed(core)

    def arrived(self, core: Core, sync: Sync) -> None:
        """Send content that arrived from one server to the others."""
        for other in self._syncs:
            if other is not sync:
                other.push(core)

    def _own_logs(self, core: Core) -> list[SessionLog]:
        """Return the logs of a value that this node writes and that are not void."""
        written = self.own_sessions & core.sessions.keys()  # iterates over the smaller set
        return [core.sessions[SessionId(session)] for session in written if core.is_live(session)]
