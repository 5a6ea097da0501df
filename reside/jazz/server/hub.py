"""The protocol of a sync server as a state machine without I/O (docs/jazz-protocol.md, sections 4 and 10).

Each connection is a `Peer`. `Hub.receive` processes a message of it and queues what is to be sent; `Hub.outgoing` makes
the queued messages. A message or session that can't be accepted costs nobody but its sender.
"""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import is_co_id
from reside.jazz.memory.covalue import Core
from reside.jazz.server.admission import Admission
from reside.jazz.server.peer import MAX_RECORDS, Peer, Task
from reside.jazz.server.values import Values
from reside.jazz.sync.messages import (
    content_pieces,
    empty_known_state_message,
    known_state_message,
    read_batches,
    read_counts,
)
from reside.jazz.wire.encoding import parse_json

_log = logging.getLogger(__name__)
HOLD_S: Final = 30.0
"""How long content waits for a value that it depends on."""


class Hub:
    """The connections of a server.

    Args:
        values: the values.
        clock: returns seconds.
        hold: seconds that content waits for a value that it depends on.
        max_records: how many values and sessions one connection may name.
    """

    def __init__(
        self,
        values: Values,
        *,
        clock: Callable[[], float] = time.monotonic,
        hold: float = HOLD_S,
        max_records: int = MAX_RECORDS,
    ) -> None:
        self._values = values
        self._max_records = max_records
        self._followers: dict[str, dict[Peer, None]] = {}
        self._admission = Admission(values, self._changed, clock, hold)

    def connect(self, on_due: Callable[[], None]) -> Peer:
        """Return a new connection.

        Args:
            on_due: called when `outgoing` has messages for it.
        """
        return Peer(on_due, max_records=self._max_records)

    def disconnect(self, peer: Peer) -> None:
        """Forget a connection."""
        self._admission.forget(peer)
        for co_id in peer.states:
            followers = self._followers.get(co_id, {})
            followers.pop(peer, None)
            if not followers:
                self._followers.pop(co_id, None)

    def receive(self, peer: Peer, text: str) -> None:
        """Process a message; drop it if it violates the protocol.

        Raises:
            StoreFailed: the database file can't be read.
        """
        try:
            self._receive(peer, parse_json(text))
        except InvalidContent as error:
            _log.warning("dropped a message: %s", error)
        self.expire(peer)

    def expire(self, peer: Peer) -> None:
        """Drop what has waited too long for values that it depends on."""
        self._admission.expire(peer)

    def outgoing(self, peer: Peer) -> Iterator[str]:
        """Return the messages for a connection, each made when it is taken.

        Raises:
            StoreFailed: the database file can't be read.
        """
        while (task := peer.take()) is not None:
            yield from self._messages(peer, *task)

    # Receiving

    def _receive(self, peer: Peer, message: Any) -> None:
        if not isinstance(message, dict):
            raise InvalidContent("a message is not an object")
        action, co_id = message.get("action"), message.get("id")
        if action not in ("load", "known", "content"):
            return
        if not isinstance(co_id, str) or not is_co_id(co_id):
            raise InvalidContent("a message has no valid value id")
        if action == "content":
            batches, rejected = read_batches(message)
            for session, rejection in rejected.items():
                _log.warning("dropped a session of %s: %s (%.256s)", co_id, rejection.why, session)
            self._follow(peer, co_id)
            self._admission.admit(peer, co_id, message.get("header"), batches)
            return
        counts, header = read_counts(message), message.get("header") is True
        self._follow(peer, co_id)
        if action == "load" or message.get("isCorrection") is True:
            peer.replace(peer.state(co_id), counts, header=header)
        else:
            peer.raise_counts(peer.state(co_id), counts, header=header)
        answer: Task = "answer" if header else "whole"
        peer.send(answer if action == "load" else "content", co_id)

    def _follow(self, peer: Peer, co_id: str) -> None:
        peer.state(co_id)
        self._followers.setdefault(co_id, {})[peer] = None

    def _changed(self, co_id: str) -> None:
        for follower in self._followers.get(co_id, {}):
            follower.send("content", co_id)

    # Sending

    def _messages(self, peer: Peer, task: Task, co_id: str) -> Iterator[str]:
        core = self._values.find(co_id)
        if task == "load":
            if core is None:
                yield empty_known_state_message("load", co_id)
        elif core is None:
            if task != "content":
                yield empty_known_state_message("known", co_id, correction=task == "correct")
        elif task == "correct":
            yield known_state_message("known", core, correction=True)
        elif task == "acknowledge":
            yield self._known(peer, core)
        else:
            if task == "whole":  # whatever was sent, and acknowledged, between the `load` and this answer
                peer.replace(peer.state(co_id), {}, header=False)
            for needed in self._unsent(peer, core):
                yield from self._delta(peer, needed)
            news = self._delta(peer, core)
            yield from news
            if task == "answer" and not news:
                yield self._known(peer, core)

    def _known(self, peer: Peer, core: Core) -> str:
        """Return an acknowledgement; of a deleted value it names all that the client has, so that it sends no more."""
        void = peer.state(core.co_id).acknowledged if core.deleted else None
        return known_state_message("known", core, void=void)

    def _unsent(self, peer: Peer, core: Core) -> list[Core]:
        """Return the dependencies of a value that were never named on a connection, each after its own."""
        ordered: list[Core] = []
        stack = [(core, self._values.needs(core))]
        while stack:
            current, needs = stack[-1]
            needed = next((co_id for co_id in needs if co_id not in peer.states), None)
            if needed is None:
                stack.pop()
                if current is not core:
                    ordered.append(current)
                continue
            self._follow(peer, needed)
            other = self._values.find(needed)
            if other is not None:
                stack.append((other, self._values.needs(other)))
        return ordered

    def _delta(self, peer: Peer, core: Core) -> list[str]:
        """Return the content of a value that the client does not have, and note that it is sent."""
        state, counts = peer.state(core.co_id), core.counts()
        if state.header and all(count <= state.has(session) for session, count in counts.items()):
            return []
        pieces = content_pieces(core, state, with_header=not state.header, announce=True)
        state.header, state.sent = True, counts
        return pieces
