"""One writer's append-only log of one value: transactions, their hash chain and its signature.

A signature covers the whole log up to its transaction, so a batch is verified with one check, and nothing of a batch is
kept unless all of it is verified (docs/jazz-protocol.md, section 3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from blake3 import blake3

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import Json, SessionId, author_of
from reside.jazz.wire.crypto import Agent, verify
from reside.jazz.wire.encoding import b58encode, quote
from reside.jazz.wire.merging import Origin

_MAX_TRANSACTION_CHARACTERS = 102_400
MAX_TIME: Final = 2**53
"""No transaction is dated later (ms): beyond, not every integer is a number of JavaScript's."""


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction of a session.

    Attributes:
        session: The log it stands in.
        index: Its place in that log.
        made_at: The author's clock, ms since the epoch; nothing proves it.
        payload: JSON text of the changes, or their encryption where `key_used` is set.
        key_used: Id of the read key; None for a trusting (plain) transaction.
        meta: JSON text of the meta object, encrypted like the payload; None without.
        author: Account id or agent id.
        order: Place in the order of arrival at this node, over all sessions of the value.
        changes: The decoded changes, None as long as they can't be read.
        meta_value: The decoded meta.
        origin: Where it stood in a branch, if it was merged from one.
        barred: Why this node refuses it whatever the roles say; see `removals`.
    """

    session: SessionId
    index: int
    made_at: int
    payload: str
    key_used: str | None
    meta: str | None
    author: str
    order: int = 0
    changes: list[dict[str, Json]] | list[Json] | None = None
    meta_value: dict[str, Json] | None = None
    origin: Origin | None = None
    barred: str | None = None

    @property
    def at(self) -> int:
        """When it was written, by its author's clock; before `made_at` if it was merged from a branch."""
        return self.made_at if self.origin is None else self.origin.made_at

    @property
    def name(self) -> tuple[str, int]:
        """What its insertions are named by: session and index, in the branch that it was merged from if it was."""
        return (self.session, self.index) if self.origin is None else (self.origin.key, self.origin.index)

    @property
    def when(self) -> tuple[int, str]:
        """The total order of a value's transactions: time, then session; within a session they stand in order anyway.

        The JavaScript library leaves ties of time between sessions in the order of arrival, so that there two readers
        may differ; here all readers agree.
        """
        if self.origin is not None:
            return self.origin.made_at, self.origin.session
        return self.made_at, self.session

    @property
    def is_private(self) -> bool:
        """Whether it is encrypted."""
        return self.key_used is not None


@dataclass(slots=True, eq=False)
class SessionLog:
    """The verified log of one session of one value.

    Attributes:
        session: Who writes it.
        transactions: In order.
        signature: Covers the log up to `signed_count`.
        acknowledged: How many the server said to have; kept for our own sessions.
        stored: How many are in the local store.
        checkpoints: Signatures within the log, by the index of the last transaction that each covers.
    """

    session: SessionId
    transactions: list[Transaction] = field(default_factory=list)
    signature: str | None = None
    signed_count: int = 0
    acknowledged: int = 0
    stored: int = 0
    checkpoints: dict[int, str] = field(default_factory=dict)
    _hasher: Any = field(default_factory=blake3)
    _since_checkpoint: int = 0

    def append_verified(self, batch: Sequence[Transaction], signature: str, signer_id: str) -> bool:
        """Appends a batch if `signature` covers the log with it; False, and nothing changed, if it does not."""
        hasher = self._hasher.copy()
        try:
            hasher.update("".join(canonical(batch)).encode())
        except UnicodeEncodeError:
            return False
        if not verify(signature, _signed_text(hasher), signer_id):
            return False
        self._hasher = hasher
        self.transactions.extend(batch)
        self.signature, self.signed_count = signature, len(self.transactions)
        self._count(sum([len(transaction.payload) for transaction in batch]))
        return True

    def append_stored(self, parts: Sequence[tuple[Sequence[Transaction], str]], signer_id: str) -> bool:
        """Fills an empty log with signed batches; False if the last signature, which covers all, does not verify."""
        for batch, signature in parts:
            try:
                self._hasher.update("".join(canonical(batch)).encode())
            except UnicodeEncodeError:
                return False
            self.transactions.extend(batch)
            self.signature, self.signed_count = signature, len(self.transactions)
            self._count(sum(len(transaction.payload) for transaction in batch))
        return self.signature is not None and verify(self.signature, _signed_text(self._hasher), signer_id)

    def append_own(self, transaction: Transaction) -> None:
        """Appends a transaction of our own; `sign` follows before anything is sent."""
        self._hasher.update("".join(canonical([transaction])).encode())
        self.transactions.append(transaction)

    def sign(self, agent: Agent) -> None:
        """Signs what was appended since the last signature."""
        if self.signed_count == len(self.transactions):
            return
        size = sum(len(transaction.payload) for transaction in self.transactions[self.signed_count :])
        self.signature, self.signed_count = agent.sign(_signed_text(self._hasher)), len(self.transactions)
        self._count(size)

    def pieces(self, start: int) -> list[tuple[int, int, str]]:
        """The verifiable pieces of the log from `start`: (start, end, signature), cut at the checkpoints."""
        if self.signature is None:
            return []
        cuts = [(index + 1, self.checkpoints[index]) for index in sorted(self.checkpoints) if start <= index]
        if not cuts or cuts[-1][0] < self.signed_count:
            cuts.append((self.signed_count, self.signature))
        found = []
        for end, signature in cuts:
            if start < end:
                found.append((start, end, signature))
            start = end
        return found

    def _count(self, characters: int) -> None:
        self._since_checkpoint += characters
        if self._since_checkpoint > _MAX_TRANSACTION_CHARACTERS and self.signature is not None:
            self.checkpoints[len(self.transactions) - 1] = self.signature
            self._since_checkpoint = 0


def canonical(transactions: Iterable[Transaction]) -> list[str]:
    """Their JSON texts, which are hashed; they are also what goes over the wire."""
    texts: list[str] = []
    quoted: dict[str, str] = {}  # few keys stand in many transactions
    for item in transactions:
        key = item.key_used
        meta = "" if item.meta is None else f',"meta":{quote(item.meta)}'
        if key is None:
            texts.append(f'{{"changes":{quote(item.payload)},"madeAt":{item.made_at}{meta},"privacy":"trusting"}}')
            continue
        if key not in quoted:
            quoted[key] = quote(key)
        texts.append(
            f'{{"encryptedChanges":{quote(item.payload)},"keyUsed":{quoted[key]},"madeAt":{item.made_at}{meta},'
            '"privacy":"private"}'
        )
    return texts


def parse_transactions(raw: Sequence[Any], session: SessionId, after: int) -> list[Transaction]:
    """Transactions off the wire, checked for their shape; whether they are valid is for `permissions` to say.

    Args:
        raw: As they stand in a message.
        session: Their log.
        after: How many precede them in it.

    Raises:
        InvalidContent: One of them is not a transaction of the protocol.
    """
    author, found = author_of(session), []
    for index, item in enumerate(raw, after):
        if type(item) is not dict:
            raise InvalidContent("a transaction is not an object")
        get = item.get
        made_at, meta, privacy, key_used = get("madeAt"), get("meta"), get("privacy"), None
        if type(made_at) is not int or not 0 <= made_at <= MAX_TIME:
            raise InvalidContent("a transaction's madeAt is not a non-negative integer")
        if privacy == "private":
            payload, key_used = get("encryptedChanges"), get("keyUsed")
            if type(key_used) is not str:
                raise InvalidContent("a private transaction names no key")
        elif privacy == "trusting":
            payload = get("changes")
        else:
            raise InvalidContent("a transaction is neither trusting nor private")
        if type(payload) is not str or (meta is not None and type(meta) is not str):
            raise InvalidContent("a transaction's changes or meta are not text")
        found.append(Transaction(session, index, made_at, payload, key_used, meta, author))
    return found


def _signed_text(hasher: Any) -> str:
    return f'"hash_z{b58encode(hasher.digest())}"'
