"""Reception of batches: they are verified and appended, or deferred until their author's account is loaded.

A batch is appended only if its author's key signed it, and only without a gap before it.
"""

import logging
from collections.abc import Callable

from reside.jazz.ids import author_of, is_delete_session
from reside.jazz.memory.covalue import Batch, Core, Rejection
from reside.jazz.memory.store import Store
from reside.jazz.wire.session import SessionLog

_log = logging.getLogger(__name__)


class BatchReceiver:
    """Adds batches to the logs of a node.

    Args:
        store: the values.
        request: loads a missing account from the server.
    """

    def __init__(self, store: Store, request: Callable[[Core], None]) -> None:
        self._store = store
        self._request = request
        self._deferred: dict[str, set[str]] = {}
        self.rejected_sessions = 0

    def reject(self, core: Core, session: str, rejection: Rejection) -> None:
        """Ignore a session for the rest of the connection; others are not affected."""
        level = logging.DEBUG if core.rejected else logging.WARNING  # anyone can add any number of them
        _log.log(level, "a session of %s is ignored: %s", core.co_id, rejection.why)
        self.rejected_sessions += 1
        core.rejected[session] = rejection

    def receive(self, core: Core, batch: Batch) -> bool:
        """Verify and append a batch, or defer it; return False if transactions before it are missing."""
        if batch.session in core.rejected or not core.is_live(batch.session):
            return True
        guard = self._store.guard
        batch.new = guard is not None and guard.was_complete(core)
        author = author_of(batch.session)
        if self._store.agent_of(author) is not None:
            return self._append(core, batch)
        deferred = core.deferred.setdefault(author, [])
        # A batch that is sent again while it is deferred replaces the first copy.
        deferred[:] = [item for item in deferred if (item.session, item.after) != (batch.session, batch.after)]
        deferred.append(batch)
        self._deferred.setdefault(author, set()).add(core.co_id)
        self._request(self._store.core(author))
        return True

    def accept_deferred(self, account: Core) -> list[Core]:
        """Verify the batches that were deferred until this account was loaded; return the affected values."""
        cores = [self._store.core(co_id) for co_id in self._deferred.pop(account.co_id, ())]
        for core in cores:
            for batch in core.deferred.pop(account.co_id, ()):
                self._append(core, batch)
        return cores

    def forget(self, core: Core) -> None:
        """Drop the deferred batches of a value that is evicted."""
        for author in core.deferred:
            deferred = self._deferred.get(author, set())
            deferred.discard(core.co_id)
            if not deferred:
                self._deferred.pop(author, None)

    def reset(self) -> None:
        """Forget which values have deferred batches; the server sends the batches again on the new connection."""
        self._deferred.clear()

    def _append(self, core: Core, batch: Batch) -> bool:
        log = core.sessions.get(batch.session) or SessionLog(batch.session)
        have = len(log.transactions)
        if have < batch.after:
            return False
        fresh = batch.transactions[have - batch.after :]
        if not fresh:
            return True
        if is_delete_session(batch.session) and have + len(fresh) > 1:
            self.reject(core, batch.session, Rejection(batch.end, "a delete session has more than one transaction"))
            return True
        if self._store.guard is not None:
            self._store.guard.arriving(core, fresh, new=batch.new)
        agent_id = self._store.agent_of(author_of(batch.session)) or ""
        if log.append_verified(fresh, batch.signature, agent_id.rpartition("/")[2]):
            core.sessions[batch.session] = log
            core.add(*fresh)
            if is_delete_session(batch.session):
                self._store.changed(core)
        else:
            self.reject(core, batch.session, Rejection(batch.end, "its signature does not verify"))
        return True
