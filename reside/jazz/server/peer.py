"""One connection of a sync server: what its client has, and what is to be sent to it.

The queue names what to send, and the message is made when it is sent, from the state of that moment. So a client that
reads slowly makes the server keep ids, and no content.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from reside.jazz.ids import is_session_id
from reside.jazz.server.holding import Holding
from reside.jazz.sync.known_state import Counts, KnownState

Task: TypeAlias = Literal["content", "answer", "whole", "acknowledge", "correct", "load"]
"""What to send about a value: what is new; an answer to `load`; one to the `load` of a client that has nothing of it;
an acknowledgement; a correction; a request."""

MAX_RECORDS: Final = 1_000_000
MAX_QUEUED: Final = 10_000


class Peer:
    """A connection as the protocol sees it.

    Args:
        on_due: called when something is to be sent.
        max_records: how many values and sessions the connection may name.

    Attributes:
        states: what the client has of each value that was named on the connection.
        held: the client's content that waits for other values.
        refusal: why the connection has to be closed: it exceeds a bound of the server.
    """

    def __init__(self, on_due: Callable[[], None], *, max_records: int = MAX_RECORDS) -> None:
        self._on_due = on_due
        self._max_records = max_records
        self._records = 0
        self._queue: deque[tuple[Task, str]] = deque()
        self._due: set[str] = set()
        self.states: dict[str, KnownState] = {}
        self.held = Holding()
        self.refusal: str | None = None

    @property
    def is_full(self) -> bool:
        """Whether so much is to be sent that no more messages of the client should be read."""
        return len(self._queue) > MAX_QUEUED

    def state(self, co_id: str) -> KnownState:
        """Return what the client has of a value; from now on it receives the changes of the value."""
        state = self.states.get(co_id)
        if state is None:
            self._count(1)
            state = self.states[co_id] = KnownState()
        return state

    def replace(self, state: KnownState, counts: Counts, *, header: bool) -> None:
        """Note that the client has exactly this of a value."""
        counts = _of_sessions(counts)
        self._count(len(counts) - len(state.acknowledged))
        state.header, state.acknowledged, state.sent = header, counts, {}

    def raise_counts(self, state: KnownState, counts: Counts, *, header: bool) -> None:
        """Note that the client has at least this of a value."""
        known, before = state.acknowledged, len(state.acknowledged)
        state.header = state.header or header
        for session, count in _of_sessions(counts).items():
            known[session] = max(count, known.get(session, 0))
        self._count(len(known) - before)

    def send(self, task: Task, co_id: str) -> None:
        """Queue a message about a value. Content that is queued already has all that is new when it is sent."""
        if task == "content":
            if co_id in self._due:
                return
            self._due.add(co_id)
        self._queue.append((task, co_id))
        self._on_due()

    def take(self) -> tuple[Task, str] | None:
        """Return what to send next; None if nothing is to be sent."""
        if not self._queue:
            return None
        task, co_id = self._queue.popleft()
        if task == "content":
            self._due.discard(co_id)
        return task, co_id

    def _count(self, more: int) -> None:
        self._records += more
        if self._records > self._max_records:
            self.refusal = f"the connection names more than {self._max_records:,} values and sessions"
            self._on_due()


def _of_sessions(counts: Counts) -> Counts:
    return {session: count for session, count in counts.items() if is_session_id(session)}
