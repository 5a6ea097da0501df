"""Admission of content: it is verified and added, refused, or held back until what it depends on is there.

A session, or a header, that depends on an unknown value waits alone, with its connection, for a limited time. Its
sender is asked for the unknown value.
"""

import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from reside.jazz.errors import InvalidContent
from reside.jazz.memory.covalue import Batch, Core
from reside.jazz.server.dependencies import batch_needs, checked_header, header_needs
from reside.jazz.server.holding import Part
from reside.jazz.server.peer import Peer
from reside.jazz.server.values import Outcome, Values
from reside.jazz.wire.header import Header

_log = logging.getLogger(__name__)


class Admission:
    """Adds content of connections to the values.

    Args:
        values: the values.
        on_change: called with the id of each value that changed.
        clock: returns seconds.
        hold: seconds that content waits for a value that it depends on.
    """

    def __init__(
        self, values: Values, on_change: Callable[[str], None], clock: Callable[[], float], hold: float
    ) -> None:
        self._values = values
        self._on_change = on_change
        self._clock = clock
        self._hold_s = hold
        self._holders: dict[Peer, None] = {}
        self._created: deque[str] = deque()

    def admit(self, peer: Peer, co_id: str, raw: Any, batches: list[Batch]) -> None:
        """Add the content of a message, and what waited for it.

        Raises:
            InvalidContent: the header is refused.
            StoreFailed: the database file can't be read.
        """
        self._admit(peer, co_id, raw, batches)
        while self._created:
            self._release(self._created.popleft())

    def expire(self, peer: Peer) -> None:
        """Drop what has waited too long for values that it depends on."""
        for part in peer.held.expired(self._clock()):
            _log.warning("dropped content of %s: nobody sent %s", part.co_id, next(iter(part.unknown)))
        if not peer.held:
            self.forget(peer)

    def forget(self, peer: Peer) -> None:
        """Forget a connection that ended, or of which nothing waits."""
        self._holders.pop(peer, None)

    def _admit(self, peer: Peer, co_id: str, raw: Any, batches: list[Batch]) -> None:
        """Add content, and hold back what depends on unknown values."""
        core = self._values.find(co_id)
        created = core is None
        if core is None:
            core = self._create(peer, co_id, raw, batches)
            if core is None:
                return
        header = core.header
        if header is None:
            return
        outcomes = {self._add(peer, core, header, batch) for batch in batches}
        state = peer.state(co_id)
        state.header = True
        if Outcome.GAP in outcomes:
            peer.send("correct", co_id)
        elif outcomes != {Outcome.WAITS}:
            peer.send("acknowledge", co_id)
        if created or Outcome.ADDED in outcomes:
            self._on_change(co_id)
        peer.send("content", co_id)  # what others wrote and the sender does not have

    def _create(self, peer: Peer, co_id: str, raw: Any, batches: list[Batch]) -> Core | None:
        """Add a value with its header, or hold the message back; return None if the value is not here."""
        unknown = peer.held.waits(co_id)
        if raw is None and not unknown:
            peer.send("correct", co_id)
            return None
        header = None
        if raw is not None:
            header = checked_header(co_id, raw)
            unknown |= self._unknown(header_needs(header))
        if unknown or header is None:
            self._hold(peer, Part(co_id, co_id, raw, batches, unknown))
            return None
        self._created.append(co_id)
        return self._values.create(header)

    def _add(self, peer: Peer, core: Core, header: Header, batch: Batch) -> Outcome:
        """Add a batch, refuse it, or hold it back."""
        try:
            outcome = self._outcome(peer, core, header, batch)
        except InvalidContent as error:
            _log.warning("dropped a session of %s: %s (%s)", core.co_id, error, batch.session)
            return Outcome.REFUSED
        if outcome in (Outcome.ADDED, Outcome.HAD):
            peer.raise_counts(peer.state(core.co_id), {batch.session: batch.end}, header=True)
        return outcome

    def _outcome(self, peer: Peer, core: Core, header: Header, batch: Batch) -> Outcome:
        if not core.is_live(batch.session):
            return Outcome.HAD
        key = f"{core.co_id} {batch.session}"
        unknown = self._unknown(batch_needs(header, batch)) | peer.held.waits(key)
        if unknown:
            self._hold(peer, Part(key, core.co_id, None, [batch], unknown))
            return Outcome.WAITS
        return self._values.add(core, header, batch)

    def _unknown(self, needed: list[str]) -> set[str]:
        return {co_id for co_id in needed if self._values.find(co_id) is None}

    def _hold(self, peer: Peer, part: Part) -> None:
        part.deadline = self._clock() + self._hold_s
        awaited = peer.held.awaited()
        if not peer.held.add(part):
            _log.warning("dropped content of %s: too much content waits for unknown values", part.co_id)
            return
        self._holders[peer] = None
        for needed in sorted(part.unknown - awaited):
            peer.send("load", needed)

    def _release(self, co_id: str) -> None:
        for peer in list(self._holders):
            for part in peer.held.arrived(co_id):
                try:
                    self._admit(peer, part.co_id, part.header, part.batches)
                except InvalidContent as error:
                    _log.warning("dropped content of %s: %s", part.co_id, error)
