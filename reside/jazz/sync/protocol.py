"""The sync protocol with one server as a state machine without I/O (docs/jazz-protocol.md, section 4).

For each value and connection it keeps what the server acknowledged, and what was sent but not acknowledged. What goes
beyond both is sent next. A correction by the server replaces both records. On a new connection all records are empty,
and every value in memory is requested, dependencies first.

The answer to a request is `known` or content. `known` says exactly what the server has. Content says only what is new
here, so the server is asked once more after it. This way nothing is sent that the server already has, and nothing is
omitted that the server has lost.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import CoId, is_co_id
from reside.jazz.memory.covalue import Batch, Core, own
from reside.jazz.memory.dependencies import by_dependency, needs
from reside.jazz.memory.store import Store
from reside.jazz.sync.interfaces import Send, SyncHost
from reside.jazz.sync.known_state import KnownState
from reside.jazz.sync.load_queue import LoadQueue
from reside.jazz.sync.messages import (
    content_pieces,
    empty_known_state_message,
    known_sessions_message,
    known_state_message,
    read_batches,
    read_counts,
)
from reside.jazz.wire.encoding import parse_json
from reside.jazz.wire.header import header_of

_log = logging.getLogger(__name__)
_MAX_CORRECTIONS: Final = 3
_MAX_COMPARISONS: Final = 3


class Sync:
    """One node's side of the protocol with one server.

    Args:
        store: the values.
        host: the part that the states of all servers share.
        send: sends a message.
        send_later: sends a message with low priority: an acknowledgement.
        on_full_load: called with a value that arrived with its header: it is new, or was requested by `request_full`.
        clock: returns seconds.
    """

    def __init__(
        self,
        store: Store,
        host: SyncHost,
        send: Send,
        send_later: Callable[[str], None],
        *,
        on_full_load: Callable[[Core], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._host = host
        self._receiver = host.receiver
        self._send = send
        self._send_later = send_later
        self._on_full_load = on_full_load
        self._known: dict[str, KnownState] = {}
        self._load_queue = LoadQueue(self.ask, clock)
        self.connected = False

    def connect(self) -> None:
        """Start a new connection: request every value in memory, dependencies first."""
        self.connected = True
        self._forget_connection()
        for core in by_dependency(self._store):
            self.request(core)

    def disconnect(self) -> None:
        """End a connection, and forget what is known about the server."""
        self.connected = False
        awaited = [co_id for co_id, known in self._known.items() if known.requested]
        self._forget_connection()
        for co_id in awaited:
            core = self._store.cores.get(CoId(co_id))
            if core is not None and core.header is None:
                self._host.lacks(core)  # other servers may have answered that they do not have it

    def _forget_connection(self) -> None:
        self._known.clear()
        self._load_queue.reset()

    def request(self, core: Core, *, again: bool = False) -> None:
        """Request a value, unless it was requested on this connection.

        Args:
            core: the value.
            again: request it again even if the server answered that it does not have it.
        """
        if not self.connected or core.restoring:
            return
        known = self._known_of(core)
        if known.requested or (known.answered and not again):
            return
        known.requested, known.partial = True, core.header is not None
        if known.partial:
            # Report groups and accounts first, so that the server does not send them again with the value.
            for needed in needs(core):
                held = self._store.cores.get(CoId(needed))
                if held is not None and held.header is not None:
                    self.request(held)
        self._load_queue.add(core)

    @property
    def loads_in_flight(self) -> int:
        """The number of values that are requested and not answered."""
        return self._load_queue.in_flight

    def request_full(self, core: Core) -> None:
        """Request a value as if it were not in memory. The header in the answer distinguishes it from other content."""
        self._send(empty_known_state_message("load", core.co_id))

    def forget(self, core: Core) -> None:
        """Drop the records of a value that is evicted."""
        self._known.pop(core.co_id, None)
        self._load_queue.answered(core.co_id)

    def created(self, core: Core) -> None:
        """Note that a value was created here, so the server can't have it."""
        if self.connected:
            self._known_of(core).answered = True

    def push(self, core: Core) -> None:
        """Send the transactions of a value that are missing on the server; those of this node are signed."""
        if not self.connected:
            return
        known = self._known_of(core)
        if known.answered:
            self._send_delta(core, known)
        else:
            self.request(core)

    def has_header(self, core: Core) -> bool:
        """Return whether the server has the header of a value."""
        known = self._known.get(core.co_id)
        return known is not None and known.header

    def acknowledged(self, core: Core, session: str) -> int:
        """Return how many transactions of a session the server is known to have."""
        known = self._known.get(core.co_id)
        return 0 if known is None else known.acknowledged.get(session, 0)

    def is_without(self, core: Core) -> bool:
        """Return whether the server answered that it does not have a value."""
        known = self._known.get(core.co_id)
        return known is not None and known.answered and not known.requested and not known.header

    def ask(self, core: Core) -> None:
        """Send the `load` for a value now, whether or not one is unanswered."""
        if self.connected:
            self._send_state(core, "load")

    def ask_later(self, core: Core) -> None:
        """Ask as `ask` does, but after the acknowledgements that wait: one of them may count what is asked for."""
        if self.connected:
            self._send_later(self._state(core, "load"))

    def receive(self, text: str) -> None:
        """Process a frame from the server: messages joined by line feeds. Drop messages that violate the protocol."""
        for line in text.split("\n"):
            if not line:
                continue
            message = None
            try:
                message = parse_json(line)
                self._receive(message)
            except InvalidContent as error:
                _log.warning("dropped a message from the sync server: %s", error)
                self._note_refusal(message, str(error))
        self._load_queue.expire()

    def _note_refusal(self, message: Any, why: str) -> None:
        """Note with a value why a message about it was dropped, for the error of a load that times out."""
        co_id = message.get("id") if isinstance(message, dict) else None
        core = self._store.cores.get(CoId(co_id)) if isinstance(co_id, str) else None
        if core is not None:
            core.refusal = why

    def _receive(self, message: Any) -> None:
        if not isinstance(message, dict):
            raise InvalidContent("a message is not an object")
        action, co_id = message.get("action"), message.get("id")
        if action not in ("load", "known", "content"):
            return
        if not isinstance(co_id, str) or not is_co_id(co_id):
            raise InvalidContent("a message has no valid value id")
        core = self._store.find(co_id) if action == "load" else self._store.cores.get(CoId(co_id))
        if core is None and action == "content" and message.get("header") is not None:
            core = self._store.core(co_id)
        if core is None:
            # The value is not in memory: it was evicted or never requested. The protocol has no unsubscribing.
            if action == "load":
                self._send(empty_known_state_message("known", co_id))
        elif action == "content":
            self._receive_content(core, message)
        elif action == "known":
            self._receive_known(core, message)
        else:
            self._receive_load(core, message)

    def _receive_load(self, core: Core, message: dict[str, Any]) -> None:
        known = self._known_of(core)
        known.answered = True
        known.header, known.acknowledged, known.sent = message.get("header") is True, read_counts(message), {}
        if core.header is None or not self._send_delta(core, known):
            self._send_state(core)

    def _receive_known(self, core: Core, message: dict[str, Any]) -> None:
        known = self._known_of(core)
        counts = read_counts(message)
        was_unconfirmed = core.unconfirmed
        is_correction = message.get("isCorrection") is True
        is_acknowledgement = known.answered and not known.requested and not is_correction
        self._mark_answered(core, known)
        if is_correction:
            known.header, known.acknowledged, known.sent = message.get("header") is True, counts, {}
        else:
            known.header = known.header or message.get("header") is True
            for session, count in counts.items():
                known.acknowledged[session] = max(count, known.acknowledged.get(session, 0))
        if not known.header and core.header is None:
            self._host.lacks(core)
        if was_unconfirmed:
            self._store.changed(core)
        self._host.confirmed(core)
        if core.header is not None and not is_acknowledgement:  # an acknowledgement does not say what is missing
            self._send_delta(core, known)

    def _receive_content(self, core: Core, message: dict[str, Any]) -> None:
        known = self._known_of(core)
        batches, rejected = read_batches(message)
        if core.header is None:
            if message.get("header") is None:
                self._send(empty_known_state_message("known", core.co_id, correction=True))
                return
            self._receive_header(core, message["header"])
        for session, rejection in rejected.items():
            self._receiver.reject(core, session, rejection._replace(source=self))
        expected = message.get("expectContentUntil")
        if isinstance(expected, dict):
            core.expected = known_expected = own(core.expected)
            known_expected.update({key: count for key, count in expected.items() if type(count) is int})
        known.header = True
        gap = self._receive_batches(core, known, batches)
        if gap and known.corrections < _MAX_CORRECTIONS:
            known.corrections += 1
            self._send(known_state_message("known", core, correction=True))
        elif core.deleted and not core.deferred:
            self._acknowledge(core)
        elif not core.deferred:
            self._acknowledge_sessions(core, {*(batch.session for batch in batches), *rejected})
        if not self._compares(core, known):
            self._mark_answered(core, known)
            self._send_delta(core, known)
        self._host.confirmed(core)
        self._store.arrived(core)
        self._host.arrived(core, self)
        self._accept_deferred(core)
        if message.get("header") is not None:
            self._on_full_load(core)

    def _receive_header(self, core: Core, raw: Any) -> None:
        """Set a header from the server.

        Raises:
            InvalidContent: it is refused; then the value counts as absent, so that nothing waits for it.
        """
        try:
            header = header_of(core.co_id, raw)
        except InvalidContent as error:
            core.refusal = str(error)
            self._mark_answered(core, self._known_of(core))
            self._host.lacks(core)
            raise
        self._store.set_header(core, header)

    def _receive_batches(self, core: Core, known: KnownState, batches: Iterable[Batch]) -> bool:
        """Process batches from the server; return whether one of them left a gap."""
        gap = False
        for batch in batches:
            batch.source = self
            known.acknowledged[batch.session] = max(batch.end, known.acknowledged.get(batch.session, 0))
            gap = not self._receiver.receive(core, batch) or gap
        return gap

    def _accept_deferred(self, arrived: Core) -> None:
        """Process batches that were deferred until this group or account arrived."""
        for core in self._receiver.accept_deferred(arrived):
            if not core.deferred:
                self._acknowledge(core)
            self._store.changed(core)
            self._host.arrived(core, self)

    def _compares(self, core: Core, known: KnownState) -> bool:
        """Return whether the server still has to report how its state differs from this node's."""
        if not (known.requested and known.partial):
            return False
        if not core.is_complete():
            return True
        if core.deferred or known.comparisons >= _MAX_COMPARISONS:
            # Do not ask again: batches that can't be accepted now would be sent again each time. Assume that the server
            # has at least what it had before; if it has less, it sends a correction.
            for session, log in core.sessions.items():
                count = log.acknowledged if session in self._host.own_sessions else len(log.transactions)
                known.acknowledged[session] = max(count, known.acknowledged.get(session, 0))
            return False
        known.comparisons += 1
        self.ask(core)
        return True

    def _mark_answered(self, core: Core, known: KnownState) -> None:
        known.requested, known.answered = False, True
        if core.is_complete():
            core.unconfirmed = False
        self._load_queue.answered(core.co_id)

    def _send_delta(self, core: Core, known: KnownState) -> bool:
        """Send what the server neither has nor was sent; return whether there was anything to send."""
        if core.header is None:
            return False
        with_header = not known.header
        counts = core.counts()
        if not with_header and not any(count > known.has(session) for session, count in counts.items()):
            return False
        if not self._host.may_send(core):
            return False
        self._host.sign(core)
        check = self._host.check_of(core)
        for text in content_pieces(core, known, with_header=with_header):
            self._send(text, check)
        known.header = True
        known.sent = counts
        return True

    def _send_state(self, core: Core, action: str = "known") -> None:
        self._send(self._state(core, action))

    def _acknowledge(self, core: Core) -> None:
        self._send_later(self._state(core, "known"))

    def _acknowledge_sessions(self, core: Core, sessions: Collection[str]) -> None:
        """Acknowledge these sessions only: a value may have very many, and the server remembers the others."""
        counts = {session: max(core.count(session), core.ignored_count(session, self)) for session in sessions}
        self._send_later(known_sessions_message("known", core, counts))

    def _state(self, core: Core, action: str) -> str:
        """Return the known state of a value; include the sessions that are ignored, so that they are not sent again."""
        void = self._known_of(core).acknowledged if core.deleted else {}
        if core.rejected or core.skipped is not None:
            void = void | core.ignored_counts(self)
        return known_state_message(action, core, void=void)

    def _known_of(self, core: Core) -> KnownState:
        known = self._known.get(core.co_id)
        if known is None:
            known = self._known[core.co_id] = KnownState()
        return known
