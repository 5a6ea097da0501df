"""One value as this node holds it: its header and the verified logs of its sessions, in the order of their arrival.

Nothing here says what counts: that is `permissions` and `content`.
"""

from dataclasses import dataclass, field

from reside.jazz.ids import CoId, SessionId, is_delete_session
from reside.jazz.rules.deletion import marks_deletion
from reside.jazz.rules.group_state import NEVER, GroupState
from reside.jazz.rules.validation import GroupValidation
from reside.jazz.wire.header import Header
from reside.jazz.wire.session import SessionLog, Transaction


@dataclass(slots=True)
class Batch:
    """Transactions of one session that arrived together under one signature; `new` if the value was whole by then."""

    session: SessionId
    after: int
    transactions: list[Transaction]
    signature: str
    new: bool = False


@dataclass(slots=True, eq=False)
class Core:
    """A value's log.

    Attributes:
        co_id: the value's id.
        header: None until it arrives.
        sessions: verified logs.
        transactions: all verified transactions in the order of arrival.
        expected: what the server announced to stream: session to count.
        parked: batches whose author's account is not here yet, by author.
        rejected: sessions with a batch that did not verify: not asked for again on this connection.
        refusal: why the last message about it that broke the protocol was dropped.
        unconfirmed: whether the server may have more than what is here, as it was not (or not completely) heard yet.
        stored: whether the header is in the local store.
        absent: whether the server said that it does not have the value.
        header_acknowledged: whether the server ever said that it has the header.
        dependants: ids of the values whose content depends on this group or account.
        group_state: the validated state of a group; None when it must be computed anew.
        partial_state: the state of a group that is being judged.
        validation: how far a group was judged.
        changes_from: of a group for each revision the time from which on roles may differ from the one before.
        revision: grows with every change of the valid content; of a group also when a parent's content changes.
        secrets: read key secrets found so far.
        forgotten: how often they were forgotten, as they may have come out of what does not count any more.
        stale: whether the content must be looked at again.
        barred: how often transactions were barred after they had been judged.
        deletions: transactions that mark it as deleted, whether or not they may.
        deleted: whether one of them may: all other sessions are void then, neither counted nor sent.
    """

    co_id: CoId
    header: Header | None = None
    sessions: dict[SessionId, SessionLog] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    expected: dict[str, int] = field(default_factory=dict)
    parked: dict[str, list[Batch]] = field(default_factory=dict)
    rejected: set[str] = field(default_factory=set)
    refusal: str | None = None
    unconfirmed: bool = False
    stored: bool = False
    absent: bool = False
    header_acknowledged: bool = False
    dependants: set[CoId] = field(default_factory=set)
    group_state: GroupState | None = None
    partial_state: GroupState | None = None
    validation: GroupValidation | None = None
    changes_from: list[int] = field(default_factory=list)
    revision: int = 0
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    forgotten: int = 0
    stale: bool = True
    barred: int = 0
    deletions: list[Transaction] = field(default_factory=list)
    deleted: bool = False

    def bar(self) -> None:
        """Transactions that were judged were barred: all is judged anew."""
        self.barred += 1
        self.validation = None

    def note_change(self, since: int) -> None:
        """Return a group's valid content changed: its roles may differ from a time (ms) on."""
        self.revision += 1
        self.changes_from.append(since)

    def changed_since(self, revision: int) -> int:
        """Return from which time on a group's roles may differ from those of an earlier revision; 0 if that can't be told."""
        if len(self.changes_from) < self.revision:
            return 0
        return min(self.changes_from[revision:], default=NEVER)

    def log(self, session: SessionId) -> SessionLog:
        """Return the log of a session, made if it is new."""
        log = self.sessions.get(session)
        if log is None:
            log = self.sessions[session] = SessionLog(session)
        return log

    def count(self, session: str) -> int:
        """Return how many transactions of a session are here."""
        log = self.sessions.get(SessionId(session))
        return 0 if log is None else len(log.transactions)

    def counts(self) -> dict[str, int]:
        """Return how many transactions are here, by session."""
        return {session: len(log.transactions) for session, log in self.live_sessions() if log.transactions}

    def live_sessions(self) -> list[tuple[SessionId, SessionLog]]:
        """Return the sessions that count: of a deleted value only those that delete it."""
        return [(session, log) for session, log in self.sessions.items() if self.is_live(session)]

    def is_live(self, session: str) -> bool:
        """Return whether a session is not void."""
        return not self.deleted or is_delete_session(session)

    def is_complete(self) -> bool:
        """Return whether all that the server announced arrived, but for what it can't have meant seriously."""
        for session, count in self.expected.items():
            if not self.is_live(session) or session in self.rejected or session.split("_session", 1)[0] in self.parked:
                continue
            if self.count(session) < count:
                return False
        return self.header is not None

    def forget_connection(self) -> None:
        """Drop what came, or was to come, on a connection that is no more; the next one starts from what was kept."""
        self.unconfirmed = self.unconfirmed or (self.header is not None and not self.is_complete())
        self.expected.clear()
        self.parked.clear()
        self.rejected.clear()

    def add(self, *transactions: Transaction) -> None:
        """Take verified transactions into the order of arrival."""
        for order, item in enumerate(transactions, len(self.transactions)):
            item.order = order
            if item.meta is not None and marks_deletion(item, self.co_id):
                self.deletions.append(item)
        self.transactions += transactions
