"""The sync protocol as a state machine: messages in, messages out, no clock and no socket (jazz-protocol.md §4).

For each value and connection it keeps what the server acknowledged, and what it was sent (optimistic); what is sent
next is what goes beyond both. A correction by the server replaces the record and drops the optimism. On a new
connection all records are empty, and every value held is asked for anew, dependencies first, which also shows what
the server lacks.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .covalue import Batch, Core
from .encoding import compact_json, parse_json, quote
from .errors import InvalidContent
from .header import parse_header
from .ids import SessionId, author_of, is_account_id, is_co_id, is_session_id
from .session import SessionLog, parse_transaction
from .store import Store

_log = logging.getLogger(__name__)
_MAX_PIECE_CHARACTERS = 100_000
_MAX_CORRECTIONS = 3
_Counts = dict[str, int]


@dataclass(slots=True)
class _Peer:
    """What the server has of one value, as far as this connection knows."""

    requested: bool = False
    answered: bool = False
    header: bool = False
    acknowledged: _Counts = field(default_factory=dict)
    sent: _Counts = field(default_factory=dict)
    corrections: int = 0

    def has(self, session: str) -> int:
        """What the server has or will have of a session."""
        return max(self.acknowledged.get(session, 0), self.sent.get(session, 0))


class Sync:
    """One node's side of the protocol.

    Args:
        store: The values.
        send: Takes each outgoing message.
        on_acknowledged: Called with a value whose acknowledged state grew.
        on_whole: Called with a value that came with its header: new here, or asked for by `ask_whole`.
    """

    def __init__(
        self,
        store: Store,
        send: Callable[[str], None],
        *,
        on_acknowledged: Callable[[Core], None],
        on_whole: Callable[[Core], None],
    ) -> None:
        self._store = store
        self._send = send
        self._on_acknowledged = on_acknowledged
        self._on_whole = on_whole
        self._peers: dict[str, _Peer] = {}
        self._parked: dict[str, set[str]] = {}
        self.connected = False
        self.own_sessions: set[str] = set()
        self.unacknowledged: dict[str, None] = {}

    def connect(self) -> None:
        """A new connection: asks for every value held, dependencies first."""
        self.connected = True
        self._peers.clear()
        for core in self._store.cores.values():
            core.rejected.clear()
        for core in self._by_dependency():
            self.request(core)

    def disconnect(self) -> None:
        """The connection is gone, and with it all that was known of the server."""
        self.connected = False
        self._peers.clear()

    def request(self, core: Core, *, again: bool = False) -> None:
        """Asks for a value, if it was not asked for on this connection.

        Args:
            core: The value.
            again: Ask once more although the server answered that it does not have it.
        """
        if not self.connected:
            return
        peer = self._peer(core)
        if peer.requested or (peer.answered and not again):
            return
        peer.requested = True
        self._send(_known("load", core))

    def ask_whole(self, core: Core) -> None:
        """Asks for a value as if nothing of it were here; by its header the answer differs from all other content."""
        self._send(compact_json({"action": "load", "id": core.co_id, "header": False, "sessions": {}}))

    def forget(self, core: Core) -> None:
        """Drops the record of a value that neither side has."""
        self._peers.pop(core.co_id, None)

    def created(self, core: Core) -> None:
        """A value was made here: nobody else can have it."""
        if self.connected:
            self._peer(core).answered = True

    def push(self, core: Core) -> None:
        """Sends what the server lacks of a value."""
        for session in self.own_sessions:
            log = core.sessions.get(SessionId(session))
            if log is not None:
                log.sign(self._store.agent)
        if not self.connected:
            return
        peer = self._peer(core)
        if peer.answered:
            self._send_delta(core, peer)
        else:
            self.request(core)

    def is_acknowledged(self, core: Core) -> bool:
        """Whether the server has all that was written here."""
        if not core.header_acknowledged:
            return False
        logs = (core.sessions.get(SessionId(session)) for session in self.own_sessions)
        return all(log.acknowledged >= len(log.transactions) for log in logs if log is not None)

    def unacknowledged_logs(self, co_id: str) -> tuple[Core, list[tuple[SessionLog, int]]]:
        """A value's logs written here, and how much of each there is now."""
        core = self._store.core(co_id)
        logs = (core.sessions.get(SessionId(session)) for session in self.own_sessions)
        return core, [(log, len(log.transactions)) for log in logs if log is not None]

    def receive(self, text: str) -> None:
        """Takes one frame from the server: messages joined by line feeds. What breaks the protocol is dropped."""
        for line in text.split("\n"):
            if not line:
                continue
            try:
                message = parse_json(line)
                if isinstance(message, dict):
                    self._receive(message)
            except InvalidContent as error:
                _log.warning("dropped a message of the sync server: %s", error)

    def _receive(self, message: dict[str, Any]) -> None:
        action, co_id = message.get("action"), message.get("id")
        if action not in ("load", "known", "content"):
            return
        if not isinstance(co_id, str) or not is_co_id(co_id):
            raise InvalidContent("a message names no value")
        core = self._store.core(co_id)
        if action == "content":
            self._receive_content(core, message)
        elif action == "known":
            self._receive_known(core, message)
        else:
            self._receive_load(core, message)

    def _receive_load(self, core: Core, message: dict[str, Any]) -> None:
        peer = self._peer(core)
        peer.answered = True
        peer.header, peer.acknowledged, peer.sent = message.get("header") is True, _counts(message), {}
        if core.header is None or not self._send_delta(core, peer):
            self._send(_known("known", core))

    def _receive_known(self, core: Core, message: dict[str, Any]) -> None:
        peer = self._peer(core)
        peer.requested, peer.answered = False, True
        counts = _counts(message)
        if message.get("isCorrection") is True:
            peer.header, peer.acknowledged, peer.sent = message.get("header") is True, counts, {}
        else:
            peer.header = peer.header or message.get("header") is True
            for session, count in counts.items():
                peer.acknowledged[session] = max(count, peer.acknowledged.get(session, 0))
        if not peer.header and core.header is None:
            core.absent = True
            self._store.changed(core)
        self._note_acknowledged(core, peer)
        if core.header is not None:
            self._send_delta(core, peer)

    def _receive_content(self, core: Core, message: dict[str, Any]) -> None:
        peer = self._peer(core)
        if core.header is None:
            if message.get("header") is None:
                self._send(
                    compact_json(
                        {"action": "known", "id": core.co_id, "header": False, "sessions": {}, "isCorrection": True}
                    )
                )
                return
            header = parse_header(message["header"])
            if header.co_id != core.co_id:
                raise InvalidContent(f"the header that came for {core.co_id} belongs to {header.co_id}")
            self._store.set_header(core, header)
        batches = [_batch(session, raw) for session, raw in _members(message, "new").items()]
        expected = message.get("expectContentUntil")
        if isinstance(expected, dict):
            core.expected.update({key: count for key, count in expected.items() if type(count) is int})
        was_requested, peer.requested, peer.answered, peer.header = peer.requested, False, True, True
        gap = self._apply_all(core, peer, batches)
        if was_requested:
            self._assume_acknowledged(core, peer)
        if gap and peer.corrections < _MAX_CORRECTIONS:
            peer.corrections += 1
            self._send(_known("known", core, correction=True))
        elif not core.parked:
            self._send(_known("known", core))
        self._note_acknowledged(core, peer)
        self._store.changed(core)
        if core.header is not None and core.header.is_account:
            self._unpark(core)
        self._send_delta(core, peer)
        if message.get("header") is not None:
            self._on_whole(core)

    def _apply_all(self, core: Core, peer: _Peer, batches: Iterable[Batch]) -> bool:
        """Applies batches that came from the server; whether one of them left a gap."""
        gap = False
        for batch in batches:
            end = batch.after + len(batch.transactions)
            peer.acknowledged[batch.session] = max(end, peer.acknowledged.get(batch.session, 0))
            if batch.session in core.rejected:
                continue
            author = author_of(batch.session)
            if self._store.agent_of(author) is None:
                core.parked.setdefault(author, []).append(batch)
                self._parked.setdefault(author, set()).add(core.co_id)
                self.request(self._store.core(author))
            elif not self._apply(core, batch):
                gap = True
        return gap

    def _apply(self, core: Core, batch: Batch) -> bool:
        """Verifies and appends one batch; False if something is missing before it."""
        log = core.sessions.get(batch.session) or SessionLog(batch.session)
        have = len(log.transactions)
        if have < batch.after:
            return False
        fresh = batch.transactions[have - batch.after :]
        if not fresh:
            return True
        agent_id = self._store.agent_of(author_of(batch.session)) or ""
        if log.append_verified(fresh, batch.signature, agent_id.rpartition("/")[2]):
            core.sessions[batch.session] = log
            for transaction in fresh:
                core.add(transaction)
        else:
            core.rejected.add(batch.session)
            _log.warning("a signature in %s does not verify; its session is ignored", core.co_id)
        return True

    def _unpark(self, account: Core) -> None:
        """An account arrived: what its sessions wrote can be verified now."""
        for co_id in self._parked.pop(account.co_id, ()):
            core = self._store.core(co_id)
            for batch in core.parked.pop(account.co_id, ()):
                self._apply(core, batch)
            if not core.parked:
                self._send(_known("known", core))
            self._store.changed(core)

    def _assume_acknowledged(self, core: Core, peer: _Peer) -> None:
        """The server answered with content, which does not tell what it has of our own sessions: take it as before.

        If it has less, it corrects us.
        """
        for session in self.own_sessions:
            log = core.sessions.get(SessionId(session))
            if log is not None:
                peer.acknowledged[session] = max(log.acknowledged, peer.acknowledged.get(session, 0))

    def _note_acknowledged(self, core: Core, peer: _Peer) -> None:
        core.header_acknowledged = core.header_acknowledged or peer.header
        for session in self.own_sessions:
            log = core.sessions.get(SessionId(session))
            if log is not None:
                log.acknowledged = max(log.acknowledged, peer.acknowledged.get(session, 0))
        if core.co_id in self.unacknowledged:
            if self.is_acknowledged(core):
                del self.unacknowledged[core.co_id]
            self._on_acknowledged(core)

    def _send_delta(self, core: Core, peer: _Peer) -> bool:
        """Sends what the server neither has nor was sent; whether that was anything."""
        if core.header is None:
            return False
        with_header = not peer.header
        counts = core.counts()
        if not with_header and not any(count > peer.has(session) for session, count in counts.items()):
            return False
        for session in self.own_sessions:
            if session in counts:
                core.sessions[SessionId(session)].sign(self._store.agent)
        for text in _pieces(core, peer, with_header=with_header):
            self._send(text)
        peer.header = True
        peer.sent = counts
        return True

    def _peer(self, core: Core) -> _Peer:
        peer = self._peers.get(core.co_id)
        if peer is None:
            peer = self._peers[core.co_id] = _Peer()
        return peer

    def _by_dependency(self) -> list[Core]:
        """All values, each after the accounts and groups that it needs."""
        ordered: dict[str, Core] = {}
        opened: set[str] = set()
        stack = list(reversed(self._store.cores.values()))
        while stack:
            core = stack.pop()
            if core.co_id in ordered:
                continue
            if core.co_id in opened:
                ordered[core.co_id] = core
                continue
            opened.add(core.co_id)
            stack.append(core)
            stack.extend(self._store.core(needed) for needed in self._needs(core) if needed not in opened)
        return list(ordered.values())

    def _needs(self, core: Core) -> list[str]:
        needed = [author_of(session) for session in core.sessions]
        if core.header is not None and core.header.owner is not None:
            needed.append(core.header.owner)
        if core.group_state is not None:
            needed.extend(core.group_state.parents)
        return [co_id for co_id in needed if is_account_id(co_id)]


def _pieces(core: Core, peer: _Peer, *, with_header: bool) -> list[str]:
    """The content messages for what the server lacks, cut where there are signatures to prove the parts."""
    header = core.header
    if header is None:
        return []
    start = f'{{"action":"content","id":"{core.co_id}"'
    raw = f',"header":{compact_json(dict(header.raw))}' if with_header else ""
    messages: list[str] = []
    parts: dict[str, str] = {}
    size = 0

    def close() -> None:
        nonlocal size, raw
        new = ",".join(parts.values())
        messages.append(f'{start}{raw},"priority":{header.priority},"new":{{{new}}}}}')
        parts.clear()
        raw, size = "", 0

    for session, log in core.sessions.items():
        for begin, end, signature in log.pieces(peer.has(session)):
            if size > _MAX_PIECE_CHARACTERS or session in parts:
                close()
            body = ",".join([item.canonical() for item in log.transactions[begin:end]])
            parts[session] = (
                f'{quote(session)}:{{"after":{begin},"newTransactions":[{body}],"lastSignature":{quote(signature)}}}'
            )
            size += len(body)
    if parts or not messages:
        close()
    return messages


def _known(action: str, core: Core, *, correction: bool = False) -> str:
    sessions = compact_json(core.counts())
    header = "true" if core.header is not None else "false"
    tail = ',"isCorrection":true' if correction else ""
    return f'{{"action":"{action}","id":"{core.co_id}","header":{header},"sessions":{sessions}{tail}}}'


def _counts(message: dict[str, Any]) -> _Counts:
    sessions = _members(message, "sessions")
    if not all(type(count) is int and count >= 0 for count in sessions.values()):
        raise InvalidContent("a known state has a count that is not a non-negative integer")
    return dict(sessions)


def _members(message: dict[str, Any], key: str) -> dict[str, Any]:
    members = message.get(key)
    if not isinstance(members, dict):
        raise InvalidContent(f"a message's {key} is not an object")
    return members


def _batch(session: str, raw: Any) -> Batch:
    if not isinstance(raw, dict) or not is_session_id(session):
        raise InvalidContent("a content message's session is malformed")
    after, transactions, signature = raw.get("after"), raw.get("newTransactions"), raw.get("lastSignature")
    if type(after) is not int or after < 0 or not isinstance(transactions, list) or not isinstance(signature, str):
        raise InvalidContent("a content message's session is malformed")
    parsed = [parse_transaction(item, SessionId(session), after + place) for place, item in enumerate(transactions)]
    return Batch(SessionId(session), after, parsed, signature)
