"""The values of a sync server: verified logs in memory and, if there is a database file, on disk.

Invariant:
    Everything that a value depends on is here, too, because only such content is added.
"""

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from reside.jazz.disk import StorePersistence
from reside.jazz.disk.database import SqliteStore
from reside.jazz.errors import InvalidContent
from reside.jazz.ids import CoId, author_of, is_delete_session
from reside.jazz.memory.covalue import Batch, Core
from reside.jazz.memory.store import Store
from reside.jazz.server.dependencies import batch_needs, header_needs
from reside.jazz.wire.crypto import Agent, new_agent_secret
from reside.jazz.wire.header import Header
from reside.jazz.wire.session import SessionLog

_OWNER: Final = "sync server"
"""Stands for the account in the database file, which a node refuses to share with another account."""


class Outcome(Enum):
    """What became of a batch."""

    ADDED = auto()
    HAD = auto()  # all of it was here, or it is void
    GAP = auto()  # transactions before it are missing
    WAITS = auto()  # it depends on unknown values
    REFUSED = auto()


class Values:
    """The values of a server.

    Args:
        disk: the database file; None keeps all values in memory only.
    """

    def __init__(self, disk: SqliteStore | None = None) -> None:
        self._store = Store(Agent.from_secret(new_agent_secret()), _OWNER, lambda _: None)
        self._needs: dict[CoId, dict[str, None]] = {}
        self._undecided: list[Core] = []
        self._persistence: StorePersistence | None = None
        if disk is not None:
            self._persistence = StorePersistence(disk, self._store, lambda: None, {}, set())
            self._store.restore = self._restore

    def open(self) -> None:
        """Open the database file.

        Raises:
            StoreFailed: it can't be used.
        """
        if self._persistence is not None:
            self._persistence.open_file()
            self._persistence.open()

    def save(self) -> None:
        """Write all changes to the database file.

        Raises:
            StoreFailed: it can't be written.
        """
        if self._persistence is not None:
            self._persistence.save()

    def close(self) -> None:
        """Save, and close the database file.

        Raises:
            StoreFailed: it can't be written.
        """
        if self._persistence is not None:
            self._persistence.close(save=True)

    def find(self, co_id: str) -> Core | None:
        """Return a value that is here; None if it is not.

        Raises:
            StoreFailed: the database file can't be read.
        """
        core = self._store.find(co_id)
        self._decide_deletions()
        return None if core is None or core.header is None else core

    def needs(self, core: Core) -> Iterator[str]:
        """Return the values that a value depends on."""
        return iter(self._needed(core))

    def create(self, header: Header) -> Core:
        """Add a value with nothing but its header."""
        core = self._store.core(header.co_id)
        self._store.set_header(core, header)
        self._changed(core)
        return core

    def add(self, core: Core, header: Header, batch: Batch) -> Outcome:
        """Verify a batch and append it to its session; return `ADDED`, `HAD` or `GAP`.

        Raises:
            InvalidContent: it is refused.
        """
        log = core.sessions.get(batch.session) or SessionLog(batch.session)
        have = len(log.transactions)
        fresh = batch.transactions[max(have - batch.after, 0) :]
        if have < batch.after:
            return Outcome.GAP
        if not fresh:
            return Outcome.HAD
        if is_delete_session(batch.session) and have + len(fresh) > 1:
            raise InvalidContent("a delete session has more than one transaction")
        signer_id = (self._store.agent_of(author_of(batch.session)) or "").rpartition("/")[2]
        if not log.append_verified(fresh, batch.signature, signer_id):
            raise InvalidContent("its signature does not verify")
        core.sessions[batch.session] = log
        core.add(*fresh)
        self._needed(core).update(dict.fromkeys(batch_needs(header, batch)))
        self._changed(core)
        return Outcome.ADDED

    def _changed(self, core: Core) -> None:
        if self._persistence is not None:
            self._persistence.mark(core)
        self._store.changed(core)
        if core.deletions:
            self._undecided.append(core)
            self._decide_deletions()

    def _decide_deletions(self) -> None:
        """Load the groups that say whether deletions are valid; after a restart they may be in the database only."""
        while self._undecided:
            core = self._undecided.pop()
            seen, stack = {core.co_id}, [core]
            while stack:
                for needed in self.needs(stack.pop()):
                    other = None if needed in seen else self._store.find(needed)
                    if other is not None:
                        seen.add(other.co_id)
                        stack.append(other)
            self._store.changed(core)

    def _needed(self, core: Core) -> dict[str, None]:
        needed = self._needs.get(core.co_id)
        if needed is None and core.header is not None:
            needed = self._needs[core.co_id] = dict.fromkeys(header_needs(core.header))
            for session, log in core.sessions.items():
                needed.update(dict.fromkeys(batch_needs(core.header, Batch(session, 0, log.transactions, ""))))
        return {} if needed is None else needed

    def _restore(self, core: Core) -> None:
        if self._persistence is None:
            return
        self._persistence.restore(core)
        if core.deletions:
            self._undecided.append(core)  # not now: the values that it needs may have deletions, too
