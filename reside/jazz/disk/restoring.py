"""Restoring of values from the local store, when they are needed.

The file is not trusted. A header must have the value's id as its hash, and each log is verified with the signature at
its end, which covers all of it. So neither a faulty disk nor an attacker can forge content. Permissions are validated
as for content from the server.

A large file is restored in parts, a few milliseconds a turn of the event loop. Until then it is incomplete, as if the
rest were still to arrive from the server, which is asked only for what the store does not have.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from reside.jazz.disk.records import StoredBatch
from reside.jazz.errors import InvalidContent, StoreFailed
from reside.jazz.ids import CoId, SessionId, author_of, is_account_id, is_session_id
from reside.jazz.memory.covalue import Core, own
from reside.jazz.memory.store import Store
from reside.jazz.wire.encoding import parse_json
from reside.jazz.wire.header import Header, parse_header
from reside.jazz.wire.session import SessionLog, Transaction, parse_transactions

if TYPE_CHECKING:
    from reside.jazz.disk.database import SqliteStore

_BATCHES_AT_ONCE: Final = 8
"""Batches of a file that are read in one turn: usually 100 KiB each, which together take about 5 ms."""


class RestoringInParts(NamedTuple):
    """How a node restores a large file in parts.

    Attributes:
        on_restored: called with a file that is restored completely, to ask the servers for more.
        on_failure: called if the rest of a file can't be read.
    """

    on_restored: Callable[[Core], None]
    on_failure: Callable[[StoreFailed], None]


class _Part(NamedTuple):
    """The first batches of a value, and the numbers of those that follow later."""

    core: Core
    batches: list[StoredBatch]
    rest: list[int]


class Restoring:
    """Fills the values of a node from a file.

    Args:
        disk: the file.
        store: the values.
        parts: restores large files in parts; None: at once.
    """

    def __init__(self, disk: "SqliteStore", store: Store, parts: RestoringInParts | None) -> None:
        self._disk = disk
        self._store = store
        self._parts = parts

    def restore(self, core: Core) -> list[Core]:
        """Fill an empty value from the file, together with the accounts and the group that are needed to validate it.

        Returns:
            the values that were filled.

        Raises:
            StoreFailed: the file can't be read, or its content has no valid signature.
        """
        found = self._open_all(core)
        for part in reversed(found):
            self._fill(part.core, part.batches)
            if part.rest and self._parts is not None:
                part.core.restoring = True
                part.core.expected = expected = own(part.core.expected)
                expected.update(self._disk._lengths(part.core.co_id))
                self._continue_later(part, self._parts)
        return [part.core for part in found]

    def _open_all(self, core: Core) -> list[_Part]:
        """Set the headers of a value and of all that it needs, without recursion: anyone can make a long chain."""
        opened: list[_Part] = []
        todo = [core]
        while todo:
            current = todo.pop()
            header = self._header(current)
            if header is None:
                continue
            if header.is_file and self._parts is not None:
                sessions, numbers = self._disk._sessions(current.co_id), self._disk._batch_numbers(current.co_id)
                batches, rest = self._disk._batches(numbers[:_BATCHES_AT_ONCE]), numbers[_BATCHES_AT_ONCE:]
            else:
                batches, rest = self._disk._all_batches(current.co_id), []
                sessions = [batch.session for batch in batches]
            needed = {author_of(session) for session in sessions} | {header.owner or ""}
            new = [Core(CoId(co_id)) for co_id in sorted(needed - self._store.cores.keys()) if is_account_id(co_id)]
            self._store.cores.update((core.co_id, core) for core in new)
            todo += new
            current.stored = current.unconfirmed = True
            self._store.set_header(current, header)
            opened.append(_Part(current, batches, rest))
        return opened

    def _header(self, core: Core) -> Header | None:
        found = self._disk._header(core.co_id)
        if found is None:
            return None
        try:
            header = parse_header(parse_json(found))
        except InvalidContent as error:
            raise self._corrupt(core, error) from None
        if header.co_id != core.co_id:
            raise self._corrupt(core, InvalidContent("its header is another value's"))
        return header

    def _continue_later(self, part: _Part, parts: RestoringInParts) -> None:
        asyncio.get_running_loop().call_soon(self._continue, part, parts)

    def _continue(self, part: _Part, parts: RestoringInParts) -> None:
        """Fill a large file with its next batches."""
        core = part.core
        if self._store.cores.get(core.co_id) is not core or not self._disk.is_open:
            return
        now, later = part.rest[:_BATCHES_AT_ONCE], part.rest[_BATCHES_AT_ONCE:]
        try:
            self._fill(core, self._disk._batches(now))
        except StoreFailed as error:
            parts.on_failure(error)
            return
        if later:
            self._continue_later(_Part(core, [], later), parts)
        else:
            core.restoring = False
            parts.on_restored(core)

    def _fill(self, core: Core, batches: Sequence[StoredBatch]) -> None:
        """Append batches to a value's logs.

        Raises:
            StoreFailed: they can't have been stored by this package.
        """
        pieces: dict[str, list[tuple[list[Transaction], str]]] = {}
        arrived: list[Transaction] = []
        try:
            for batch in batches:
                before = core.count(batch.session) + sum(len(piece) for piece, _ in pieces.get(batch.session, ()))
                transactions = _read(batch, before)
                pieces.setdefault(batch.session, []).append((transactions, batch.signature))
                arrived.extend(transactions)
            for session, parts in pieces.items():
                self._append(core, SessionId(session), parts)
        except InvalidContent as error:
            raise self._corrupt(core, error) from None
        core.add(*arrived)
        self._store.arrived(core)

    def _append(self, core: Core, session: SessionId, parts: Sequence[tuple[list[Transaction], str]]) -> None:
        log = core.sessions.get(session) or SessionLog(session)
        agent_id = self._store.agent_of(author_of(session)) or ""
        if not log.append_stored(parts, agent_id.rpartition("/")[2]):
            raise InvalidContent(f"the signature of the session {session} does not verify")
        log.stored = log.signed_count
        core.sessions[session] = log

    def _corrupt(self, core: Core, error: InvalidContent) -> StoreFailed:
        return self._disk._corrupt(f"the value {core.co_id}: {error}")


def _read(batch: StoredBatch, count: int) -> list[Transaction]:
    raw = parse_json(batch.transactions)
    if not is_session_id(batch.session) or batch.after != count or not isinstance(raw, list):
        raise InvalidContent(f"its session {batch.session} has a gap")
    return parse_transactions(raw, SessionId(batch.session), batch.after)
