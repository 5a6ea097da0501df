"""Persistence of a node's values: changes are written once each event-loop turn, and values are read when needed.

The file is not trusted. A header must have the value's id as its hash, and each log is verified with the signature at
its end, which covers all of it. So neither a faulty disk nor an attacker can forge content. Permissions are validated
as for content from the server.

Signed logs are written in order. After a crash the next process can read the logs, and sends what the server had not
acknowledged; it writes in a session of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from reside.jazz.disk.records import StoredBatch, StoredValue
from reside.jazz.errors import InvalidContent, StoreFailed
from reside.jazz.ids import CoId, SessionId, author_of, is_account_id, is_session_id
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.wire.encoding import compact_json, parse_json
from reside.jazz.wire.header import parse_header
from reside.jazz.wire.session import SessionLog, Transaction, canonical, parse_transactions

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
    """

    def __init__(
        self,
        disk: "SqliteStore",
        store: Store,
        sign: Callable[[], None],
        unacknowledged: Mapping[str, None],
        own_sessions: set[str],
    ) -> None:
        self._disk = disk
        self._store = store
        self._sign = sign
        self._unacknowledged = unacknowledged
        self._own_sessions = own_sessions
        self._changed: dict[str, Core] = {}
        self._pending: set[str] = set()

    def open(self) -> list[Core]:
        """Open the file, and take over the sessions that the server has not acknowledged.

        Returns:
            the values with content that is missing on the server.

        Raises:
            StoreFailed: the file can't be used.
        """
        self._disk._open(self._store.account_id)
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
                    writer.header(core.co_id, compact_json(dict(core.header.raw)))
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
        """Fill an empty value from the file, together with the accounts and the group that are needed to validate it.

        Raises:
            StoreFailed: the file can't be read, or its content has no valid signature.
        """
        for needed, found in reversed(self._opened(core)):
            try:
                self._fill(needed, found)
            except InvalidContent as error:
                raise self._corrupt(needed, error) from None
            self._store.arrived(needed)
            self._changed.pop(needed.co_id, None)

    def _opened(self, core: Core) -> list[tuple[Core, StoredValue]]:
        """Set the headers of a value and of all that it needs, without recursion: anyone can make a long chain."""
        opened: list[tuple[Core, StoredValue]] = []
        todo = [core]
        while todo:
            current = todo.pop()
            found = self._disk._value(current.co_id)
            if found is None:
                continue
            try:
                header = parse_header(parse_json(found.header))
            except InvalidContent as error:
                raise self._corrupt(current, error) from None
            if header.co_id != current.co_id:
                raise self._corrupt(current, InvalidContent("its header is another value's"))
            needed = {author_of(batch.session) for batch in found.batches} | {header.owner or ""}
            new = [Core(CoId(co_id)) for co_id in sorted(needed - self._store.cores.keys()) if is_account_id(co_id)]
            self._store.cores.update((core.co_id, core) for core in new)
            todo += new
            current.stored = current.unconfirmed = True
            self._store.set_header(current, header)
            opened.append((current, found))
        return opened

    def _corrupt(self, core: Core, error: InvalidContent) -> StoreFailed:
        return self._disk._corrupt(f"the value {core.co_id}: {error}")

    def _fill(self, core: Core, found: StoredValue) -> None:
        pieces: dict[str, list[tuple[list[Transaction], str]]] = {}
        arrived: list[Transaction] = []
        for batch in found.batches:
            transactions = _read(batch, sum(len(piece) for piece, _ in pieces.get(batch.session, ())))
            pieces.setdefault(batch.session, []).append((transactions, batch.signature))
            arrived.extend(transactions)
        for session, parts in pieces.items():
            log = SessionLog(SessionId(session))
            agent_id = self._store.agent_of(author_of(session)) or ""
            if not log.append_stored(parts, agent_id.rpartition("/")[2]):
                raise InvalidContent(f"the signature of the session {session} does not verify")
            log.stored = log.signed_count
            core.sessions[log.session] = log
        core.add(*arrived)


def _unstored(core: Core) -> Iterable[StoredBatch]:
    for session, log in core.live_sessions():
        for begin, end, signature in log.pieces(log.stored):
            body = ",".join(canonical(log.transactions[begin:end]))
            yield StoredBatch(session, begin, f"[{body}]", signature)


def _read(batch: StoredBatch, count: int) -> list[Transaction]:
    raw = parse_json(batch.transactions)
    if not is_session_id(batch.session) or batch.after != count or not isinstance(raw, list):
        raise InvalidContent(f"its session {batch.session} has a gap")
    return parse_transactions(raw, SessionId(batch.session), batch.after)
