"""Reception of batches: they are verified and appended, skipped, or deferred until what they need is loaded.

A batch needs the group that owns its value, because it is skipped if its author has no role there, and its author's
account. It is appended only if its author's key signed it, and only without a gap before it.
"""

import logging
from collections.abc import Callable

from reside.jazz.ids import author_of, is_delete_session
from reside.jazz.memory.covalue import Batch, Core, Rejection, own
from reside.jazz.memory.store import Store
from reside.jazz.sync.skipping import Skipping
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
        self._skipping = Skipping(store)
        self._deferred: dict[str, set[str]] = {}
        self.rejected_sessions = 0

    def reject(self, core: Core, session: str, rejection: Rejection) -> None:
        """Ignore a session for the rest of the connection; others are not affected."""
        level = logging.DEBUG if core.rejected else logging.WARNING  # anyone can add any number of them
        _log.log(level, "a session of %s is ignored: %s", core.co_id, rejection.why)
        self.rejected_sessions += 1
        core.rejected = rejected = own(core.rejected)
        rejected[session] = rejection

    def receive(self, core: Core, batch: Batch) -> bool:
        """Verify and append a batch, or defer it; return False if transactions before it are missing."""
        rejection = core.rejected.get(batch.session)
        if (rejection is not None and rejection.source is batch.source) or not core.is_live(batch.session):
            return True
        guard = self._store.guard
        batch.new = guard is not None and guard.was_complete(core)
        return self._accept(core, batch)

    def accept_deferred(self, arrived: Core) -> list[Core]:
        """Process the batches that were deferred until this group or account was loaded; return the affected values."""
        cores = [self._store.core(co_id) for co_id in self._deferred.pop(arrived.co_id, ())]
        for core in cores:
            for batch in own(core.deferred).pop(arrived.co_id, {}).values():
                self._accept(core, batch)
        return cores

    def _accept(self, core: Core, batch: Batch) -> bool:
        owner = None if core.header is None or core.header.owner is None else self._store.core(core.header.owner)
        if owner is not None and owner.header is None and not owner.absent:
            return self._defer(core, batch, owner)
        if self._skipping.skips(core, batch):
            return self._skipping.skip(core, batch)
        author = author_of(batch.session)
        if self._store.agent_of(author) is None:
            return self._defer(core, batch, self._store.core(author))
        return self._append(core, batch)

    def _defer(self, core: Core, batch: Batch, needed: Core) -> bool:
        core.deferred = waiting = own(core.deferred)
        deferred = waiting.setdefault(needed.co_id, {})
        deferred[batch.session, batch.after] = batch  # sent again while it is deferred, it replaces the first copy
        self._deferred.setdefault(needed.co_id, set()).add(core.co_id)
        self._request(needed)
        return True

    def release_skipped(self) -> list[Core]:
        """Return the values of which the server must be asked for sessions that were skipped."""
        return self._skipping.release() if self._store.skipping else []

    def forget(self, core: Core) -> None:
        """Drop the deferred batches of a value that is evicted."""
        for needed in core.deferred:
            deferred = self._deferred.get(needed, set())
            deferred.discard(core.co_id)
            if not deferred:
                self._deferred.pop(needed, None)

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
            why = "a delete session has more than one transaction"
            self.reject(core, batch.session, Rejection(batch.end, why, batch.source))
            return True
        if self._store.guard is not None:
            self._store.guard.arriving(core, fresh, new=batch.new)
        agent_id = self._store.agent_of(author_of(batch.session)) or ""
        if log.append_verified(fresh, batch.signature, agent_id.rpartition("/")[2]):
            core.sessions[batch.session] = log
            core.add(*fresh)
            own(core.rejected).pop(batch.session, None)  # another server sent something invalid
            if is_delete_session(batch.session):
                self._store.changed(core)
        else:
            self.reject(core, batch.session, Rejection(batch.end, "its signature does not verify", batch.source))
        return True
