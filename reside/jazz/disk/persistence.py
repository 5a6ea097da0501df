"""Persistence of a node's values: changes are written once each event-loop turn.

Signed logs are written in order. After a crash the next process can read the logs, and sends what the server had not
acknowledged; it writes in a session of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from reside.jazz.disk.records import StoredBatch
from reside.jazz.disk.restoring import Restoring, RestoringInParts
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.wire.session import canonical

if TYPE_CHECKING:
    from reside.jazz.disk.database import SqliteStore


class StorePersistence:
    """Keeps the values of a node in a file.

    Args:
        disk: the file.
        store: the values.
        sign: signs and sends what was written and not sent yet.
        unacknowledged: the values with content that is missing on the server.
        own_sessions: the sessions that this node writes.
        parts: restores large files in parts; None: at once.
    """

    def __init__(
        self,
        disk: "SqliteStore",
        store: Store,
        sign: Callable[[], None],
        unacknowledged: Mapping[str, None],
        own_sessions: set[str],
        *,
        parts: RestoringInParts | None = None,
    ) -> None:
        self._disk = disk
        self._store = store
        self._sign = sign
        self._unacknowledged = unacknowledged
        self._own_sessions = own_sessions
        self._restoring = Restoring(disk, store, parts)
        self._changed: dict[str, Core] = {}
        self._pending: set[str] = set()

    def open_file(self) -> None:
        """Open the file and check it, which takes a second for some GB; it may be called in another thread.

        Raises:
            StoreFailed: the file can't be used.
        """
        self._disk._open(self._store.account_id)

    def open(self) -> list[Core]:
        """Take over the sessions that the servers have not acknowledged, after `open_file`.

        Returns:
            the values with content that is missing on a server.

        Raises:
            StoreFailed: the file can't be read.
        """
        try:
            for co_id, session in self._disk._pending():
                self._pending.add(co_id)
                if session:
                    self._own_sessions.add(session)
            return [self._store.core(co_id) for co_id in sorted(self._pending)]
        except BaseException:
            self._disk._close()
            raise

    def close(self, *, save: bool) -> None:
        """Close the file, after saving changes unless an earlier save has failed.

        Args:
            save: whether to save.

        Raises:
            StoreFailed: the file can't be written.
        """
        try:
            if save:
                self.save()
        finally:
            self._disk._close()

    def mark(self, core: Core) -> None:
        """Note that a value changed."""
        self._changed[core.co_id] = core

    def save(self) -> None:
        """Write all changes in one commit.

        Raises:
            StoreFailed: the file can't be written.
        """
        self._sign()
        if not self._changed:
            return
        with self._disk._writing() as writer:
            for core in self._changed.values():
                if core.header is None:
                    continue
                if not core.stored:
                    writer.header(core.co_id, core.header.text)
                for session, log in core.sessions.items():
                    if log.stored and not core.is_live(session):
                        writer.forget(core.co_id, session)
                for batch in _unstored(core):
                    writer.batch(core.co_id, batch)
                if core.co_id in self._unacknowledged:
                    writer.mark_pending(core.co_id, self._own_sessions & core.sessions.keys())
                elif core.co_id in self._pending:
                    writer.mark_acknowledged(core.co_id)
        self._saved()

    def _saved(self) -> None:
        for core in self._changed.values():
            core.stored = core.header is not None
            for session, log in core.sessions.items():
                log.stored = log.signed_count if core.is_live(session) else 0
            if core.co_id in self._unacknowledged:
                self._pending.add(core.co_id)
            else:
                self._pending.discard(core.co_id)
        self._changed.clear()

    def restore(self, core: Core) -> None:
        """Fill an empty value from the file; see `Restoring.restore`."""
        for filled in self._restoring.restore(core):
            self._changed.pop(filled.co_id, None)


def _unstored(core: Core) -> Iterable[StoredBatch]:
    for session, log in core.live_sessions():
        for begin, end, signature in log.pieces(log.stored):
            body = ",".join(canonical(log.transactions[begin:end]))
            yield StoredBatch(session, begin, f"[{body}]", signature)
