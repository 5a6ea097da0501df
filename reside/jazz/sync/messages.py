"""The messages of the sync protocol: serialised for the server, and checked for their shape when received.

Signatures and permissions are checked elsewhere.
"""

from sys import intern
from typing import Any, Final

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import SessionId, is_session_id
from reside.jazz.memory.covalue import Batch, Core, Rejection
from reside.jazz.sync.known_state import Counts, KnownState
from reside.jazz.wire.encoding import compact_json, quote
from reside.jazz.wire.session import canonical, parse_transactions

_MAX_PIECE_CHARACTERS: Final = 100_000


def known_state_message(action: str, core: Core, *, correction: bool = False, void: Counts | None = None) -> str:
    """Return a `load` or `known` message with the known state of a value.

    Args:
        action: `load` or `known`.
        core: the value.
        correction: whether the message corrects the server's record.
        void: counts to report for sessions that this node ignores.
    """
    counts = core.counts()
    if void:
        counts = counts | {session: max(count, counts.get(session, 0)) for session, count in void.items()}
    return known_sessions_message(action, core, counts, correction=correction)


def known_sessions_message(action: str, core: Core, counts: Counts, *, correction: bool = False) -> str:
    """Return a `load` or `known` message with these counts of sessions; see `known_state_message`."""
    sessions = ",".join([f"{quote(session)}:{count}" for session, count in counts.items()])
    header = "true" if core.header is not None else "false"
    tail = ',"isCorrection":true' if correction else ""
    return f'{{"action":"{action}","id":"{core.co_id}","header":{header},"sessions":{{{sessions}}}{tail}}}'


def empty_known_state_message(action: str, co_id: str, *, correction: bool = False) -> str:
    """Return a `load` or `known` message that reports that nothing of a value is in memory."""
    tail = ',"isCorrection":true' if correction else ""
    return f'{{"action":"{action}","id":"{co_id}","header":false,"sessions":{{}}{tail}}}'


def content_pieces(core: Core, peer: KnownState, *, with_header: bool, announce: bool = False) -> list[str]:
    """Return content messages with what the peer is missing, cut at signatures so that each can be verified.

    Args:
        core: the value.
        peer: what the peer has.
        with_header: whether the first message has the header.
        announce: whether the first of several messages says when the value is complete, as servers do.
    """
    header = core.header
    if header is None:
        return []
    start = f'{{"action":"content","id":"{core.co_id}"'
    raw = f',"header":{header.text}' if with_header else ""
    messages: list[str] = []
    parts: dict[str, str] = {}
    size = 0

    def close() -> None:
        nonlocal size, raw
        new = ",".join(parts.values())
        messages.append(f'{start}{raw},"priority":{header.priority},"new":{{{new}}}}}')
        parts.clear()
        raw, size = "", 0

    for session, log in core.live_sessions():
        for begin, end, signature in log.pieces(peer.has(session)):
            if size > _MAX_PIECE_CHARACTERS or session in parts:
                close()
            body = ",".join(canonical(log.transactions[begin:end]))
            parts[session] = (
                f'{quote(session)}:{{"after":{begin},"newTransactions":[{body}],"lastSignature":{quote(signature)}}}'
            )
            size += len(body)
    if parts or not messages:
        close()
    if announce and len(messages) > 1:
        missing = {session: count for session, count in core.counts().items() if count > peer.has(session)}
        messages[0] = f'{messages[0][:-1]},"expectContentUntil":{compact_json(missing)}}}'
    return messages


def read_counts(message: dict[str, Any]) -> Counts:
    """Return the counts of a `load` or `known` message by session.

    Raises:
        InvalidContent: a count is not a non-negative integer.
    """
    sessions = _members(message, "sessions")
    if not all(type(count) is int and count >= 0 for count in sessions.values()):
        raise InvalidContent("a known state has a count that is not a non-negative integer")
    return dict(sessions)


def read_batches(message: dict[str, Any]) -> tuple[list[Batch], dict[str, Rejection]]:
    """Return the batches of a `content` message, and the sessions whose batch violates the protocol.

    Raises:
        InvalidContent: the message has no sessions.
    """
    batches: list[Batch] = []
    rejected: dict[str, Rejection] = {}
    for session, raw in _members(message, "new").items():
        try:
            batches.append(_batch(session, raw))
        except InvalidContent as error:
            rejected[session] = Rejection(_end(raw), str(error))
    return batches, rejected


def _end(raw: Any) -> int:
    """Return how many transactions of a session the sender has, as far as a malformed batch says it."""
    if not isinstance(raw, dict):
        return 0
    after, transactions = raw.get("after"), raw.get("newTransactions")
    return after + len(transactions) if isinstance(after, int) and isinstance(transactions, list) else 0


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
    shared = SessionId(intern(session))  # one writer has the same session in all its values
    return Batch(shared, after, parse_transactions(transactions, shared, after), signature)
