"""One value in a node's memory: its header and the verified logs of its sessions, in the order of arrival.

A node has very many values, and most of their collections stay empty: those that may share one empty collection.
Whether transactions are valid is decided in `reside.jazz.rules`.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from reside.jazz.ids import CoId, SessionId, author_of, is_delete_session
from reside.jazz.rules.deletion import marks_deletion
from reside.jazz.rules.group_state import NEVER, GroupState
from reside.jazz.rules.validation import GroupValidation
from reside.jazz.wire.header import Header
from reside.jazz.wire.session import SessionLog, Transaction

K = TypeVar("K")
V = TypeVar("V")
_EMPTY: Final[Mapping[Any, Any]] = MappingProxyType({})


def own(shared: Mapping[K, V]) -> dict[K, V]:
    """Return a mapping of a `Core` that may be changed: the mapping itself, or a new one if it is the shared one."""
    return shared if isinstance(shared, dict) else {}


def _empty() -> Mapping[Any, Any]:
    return _EMPTY


@dataclass(slots=True)
class Batch:
    """Transactions of one session that arrived together under one signature.

    Attributes:
        session: their session.
        after: how many transactions precede them in the session.
        transactions: the transactions in order.
        signature: the signature of the log up to their end.
        new: whether the value had been loaded completely before they arrived.
        source: the connection on which they arrived; None for those that a test or a server adds.
    """

    session: SessionId
    after: int
    transactions: list[Transaction]
    signature: str
    new: bool = False
    source: object = None

    @property
    def end(self) -> int:
        """The number of transactions of the session up to the end of the batch."""
        return self.after + len(self.transactions)


class Rejection(NamedTuple):
    """A session that this node ignores, because it can't accept a part of it.

    Attributes:
        end: how many transactions of the session the server has.
        why: the reason.
        source: the connection on which it arrived; None if it is the same for each.
    """

    end: int
    why: str
    source: object = None


@dataclass(slots=True)
class Skipped:
    """The sessions of a value that are skipped, because their authors have no role in its group.

    Attributes:
        revision: the group's revision at the last check.
        public: the roles that everyone ever had then.
        authors: for each author, its sessions and how many transactions of each the server has.
    """

    revision: int
    public: frozenset[str]
    authors: dict[str, dict[SessionId, int]] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Return the number of transactions of each session."""
        return {session: count for sessions in self.authors.values() for session, count in sessions.items()}


@dataclass(slots=True, eq=False)
class Core:
    """A value's log.

    Attributes:
        co_id: the value's id.
        header: None until it arrives.
        sessions: verified logs.
        transactions: all verified transactions in the order of arrival.
        expected: the number of transactions that the server announced, by session.
        deferred: batches that need the owner or their author's account, by its id; each by its session and `after`.
        rejected: sessions with an invalid batch, by id; they are ignored for the rest of the connection that sent it.
        skipped: sessions of authors without a role; None if there are none.
        refusal: why the last malformed message about the value was dropped.
        unconfirmed: whether the server may have more: it has not sent its complete state yet.
        stored: whether the header is in the local store.
        restoring: whether more content is being read from the local store; meanwhile no server is asked for it.
        absent: whether the server reported that it does not have the value.
        header_acknowledged: whether the server ever reported that it has the header.
        released: whether it may be evicted although this node has written it; see `OwnedValue.release`.
        session: the session in which this node writes it; None: the one in which it writes all others.
        dependants: ids of the values whose content depends on this group or account, and of the branches of this value.
        group_state: the validated state of a group; None if it must be recomputed.
        partial_state: the state of a group while it is being validated.
        validation: the progress of validating a group.
        changes_from: for each revision of a group, the time from which roles may differ from the previous revision.
        revision: grows with every change of the valid content; for a group, also with changes of its parents.
        secrets: cached secrets of read keys.
        forgotten: how often `secrets` was cleared, because secrets may depend on content that became invalid.
        stale: whether the content must be recomputed.
        policy_refusals: how often a policy refused transactions after their validation.
        deletions: transactions that mark the value as deleted, valid or not.
        deleted: whether one of `deletions` is valid; then all other sessions are void and are neither read nor sent.
    """

    co_id: CoId
    header: Header | None = None
    sessions: dict[SessionId, SessionLog] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    expected: Mapping[str, int] = field(default_factory=_empty)
    deferred: Mapping[str, dict[tuple[SessionId, int], Batch]] = field(default_factory=_empty)
    rejected: Mapping[str, Rejection] = field(default_factory=_empty)
    skipped: Skipped | None = None
    refusal: str | None = None
    unconfirmed: bool = False
    stored: bool = False
    restoring: bool = False
    absent: bool = False
    header_acknowledged: bool = False
    released: bool = False
    session: SessionId | None = None
    dependants: AbstractSet[CoId] = frozenset()
    group_state: GroupState | None = None
    partial_state: GroupState | None = None
    validation: GroupValidation | None = None
    changes_from: Sequence[int] = ()
    revision: int = 0
    secrets: Mapping[str, str] = field(default_factory=_empty, repr=False)
    forgotten: int = 0
    stale: bool = True
    policy_refusals: int = 0
    deletions: Sequence[Transaction] = ()
    deleted: bool = False

    @property
    def governing(self) -> CoId | None:
        """The id of the group that decides who may write: the owner, or the group itself; None if there is none."""
        if self.header is None:
            return None
        return self.co_id if self.header.is_group else self.header.owner

    def restart_validation(self) -> None:
        """Restart the validation, because a policy refused transactions after it."""
        self.policy_refusals += 1
        self.validation = None

    def note_change(self, since: int) -> None:
        """Note that a group's valid content changed, and that its roles may differ from a time (ms) on."""
        self.revision += 1
        if not isinstance(self.changes_from, list):
            self.changes_from = []
        self.changes_from.append(since)

    def add_dependant(self, co_id: CoId) -> None:
        """Note that the content of another value depends on this one."""
        if not isinstance(self.dependants, set):
            self.dependants = set()
        self.dependants.add(co_id)

    def changed_since(self, revision: int) -> int:
        """Return the time from which a group's roles may differ from an earlier revision; 0 if unknown."""
        if len(self.changes_from) < self.revision:
            return 0
        return min(self.changes_from[revision:], default=NEVER)

    def log(self, session: SessionId) -> SessionLog:
        """Return the log of a session; create it if it is new."""
        log = self.sessions.get(session)
        if log is None:
            log = self.sessions[session] = SessionLog(session)
        return log

    def count(self, session: str) -> int:
        """Return the number of transactions of a session."""
        log = self.sessions.get(SessionId(session))
        return 0 if log is None else len(log.transactions)

    def ignored_count(self, session: str, source: object = None) -> int:
        """Return the number of transactions of a session if it is skipped, or rejected for a connection; else 0."""
        if self.skipped is not None:
            count = self.skipped.authors.get(author_of(session), {}).get(SessionId(session))
            if count is not None:
                return count
        rejection = self.rejected.get(session)
        return rejection.end if rejection is not None and rejection.source is source else 0

    def counts(self) -> dict[str, int]:
        """Return the number of transactions of each session."""
        return {session: len(log.transactions) for session, log in self.live_sessions() if log.transactions}

    def ignored_counts(self, source: object = None) -> dict[str, int]:
        """Return the number of transactions of each session that is skipped, or rejected for a connection."""
        rejected = {session: item.end for session, item in self.rejected.items() if item.source is source}
        return rejected if self.skipped is None else rejected | self.skipped.counts()

    def live_sessions(self) -> list[tuple[SessionId, SessionLog]]:
        """Return the sessions that are not void: for a deleted value, only the delete sessions."""
        return [(session, log) for session, log in self.sessions.items() if self.is_live(session)]

    def is_live(self, session: str) -> bool:
        """Return whether a session is not void."""
        return not self.deleted or is_delete_session(session)

    def is_complete(self) -> bool:
        """Return whether all announced transactions have arrived, except those that can't be accepted now."""
        found, missing = [], False
        for session, count in self.expected.items():
            if self._has(session, count):
                found.append(session)
            elif self.is_live(session) and session not in self.rejected and author_of(session) not in self.deferred:
                missing = True
                break
        for session in found:
            del own(self.expected)[session]  # so that the next call does not check it again
        return self.header is not None and not missing

    def _has(self, session: str, count: int) -> bool:
        """Return whether these transactions of a session have arrived; those of a skipped session are only counted."""
        if self.count(session) >= count:
            return True
        return self.skipped is not None and self.ignored_count(session) >= count

    def forget_connection(self) -> None:
        """Drop the state of a connection that has ended; the next connection resumes from the verified logs."""
        self.unconfirmed = self.unconfirmed or (self.header is not None and not self.is_complete())
        self.expected = self.deferred = self.rejected = _EMPTY

    def add(self, *transactions: Transaction) -> None:
        """Append verified transactions to the order of arrival."""
        for item in transactions:
            if item.meta is not None and marks_deletion(item):
                if not isinstance(self.deletions, list):
                    self.deletions = []
                self.deletions.append(item)
        self.transactions += transactions
