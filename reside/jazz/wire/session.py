"""One writer's append-only log of one value: transactions, their hash chain and its signature.

A signature covers the whole log up to its transaction, so one check verifies a batch. A batch is accepted completely or
not at all (docs/jazz-protocol.md, section 3).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from types import MappingProxyType
from typing import Any, Final

from blake3 import blake3

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import Json, SessionId, author_of
from reside.jazz.wire.crypto import Agent, verify
from reside.jazz.wire.encoding import b58encode, quote_cipher, stable_json
from reside.jazz.wire.merging import Origin

_MAX_TRANSACTION_CHARACTERS = 102_400
_SHORT_LOG, _SHORT_LOG_CHARACTERS = 8, 16_384
"""The hash of a log with so many transactions and characters at most is not kept."""
MAX_TIME: Final = 2**53
"""The latest time in ms that is written here; JavaScript can't represent every greater integer."""
_TIME_LIMIT: Final = 2**64
"""Servers accept transactions that are dated before this time."""


@dataclass(slots=True, eq=False)
class Transaction:
    """One transaction of a session.

    Attributes:
        session: its log.
        index: its index in that log.
        made_at: the author's clock, ms since the epoch; nothing proves it.
        payload: JSON text of the changes, encrypted if `key_used` is set.
        key_used: id of the read key; None for a trusting (plain) transaction.
        meta: JSON text of the meta object, encrypted like the payload; None if there is none.
        author: account id or agent id.
        changes: the decoded changes; None while they can't be read.
        meta_value: the decoded meta.
        origin: its position in a branch, if it was written in one or merged from one.
        inert: why it can't count in a group whatever the roles; empty if it may, None if unknown; see
            `reside.jazz.rules.inert`.
        policy_refusal: why this node refuses it although roles permit it; see `reside.jazz.removals`.
    """

    session: SessionId
    index: int
    made_at: int
    payload: str
    key_used: str | None
    meta: str | None
    author: str
    changes: list[dict[str, Json]] | list[Json] | None = None
    meta_value: dict[str, Json] | None = None
    origin: Origin | None = None
    inert: str | None = None
    policy_refusal: str | None = None

    @property
    def at(self) -> int:
        """When it was written by its author's clock; if merged from a branch, the time there."""
        return self.made_at if self.origin is None else self.origin.made_at

    @property
    def name(self) -> tuple[str, int]:
        """The session and index that name its insertions: its own or, if it was merged from a branch, those there."""
        return (self.session, self.index) if self.origin is None else (self.origin.key, self.origin.index)

    @property
    def when(self) -> tuple[int, str, int]:
        """The sort key for a value's transactions: time, session, index; if merged from a branch, those there.

        The JavaScript library breaks ties between sessions by arrival, so two readers may differ; here all agree.
        """
        if self.origin is not None:
            return self.origin.made_at, self.origin.session, self.origin.index
        return self.made_at, self.session, self.index

    @property
    def is_private(self) -> bool:
        """Whether it is encrypted."""
        return self.key_used is not None


_NONE: Final[Mapping[int, str]] = MappingProxyType({})


def _none() -> Mapping[int, str]:
    return _NONE


@dataclass(slots=True, eq=False)
class SessionLog:
    """The verified log of one session of one value.

    Attributes:
        session: its id.
        transactions: the log in order.
        signature: the signature of the first `signed_count` transactions.
        acknowledged: how many transactions the server acknowledged; only for this node's own sessions.
        stored: how many transactions are in the local store.
        checkpoints: signatures within the log, by the index of the last transaction that each covers.
    """

    session: SessionId
    transactions: list[Transaction] = field(default_factory=list)
    signature: str | None = None
    signed_count: int = 0
    acknowledged: int = 0
    stored: int = 0
    checkpoints: Mapping[int, str] = field(default_factory=_none)
    _hasher: Any = None
    _since_checkpoint: int = 0

    def append_verified(self, batch: Sequence[Transaction], signature: str, signer_id: str) -> bool:
        """Append a batch if `signature` is valid for the extended log; otherwise change nothing and return False."""
        hasher = self._hash().copy()
        try:
            hasher.update("".join(canonical(batch)).encode())
        except UnicodeEncodeError:
            return False
        if not verify(signature, _signed_text(hasher), signer_id):
            return False
        self.transactions.extend(batch)
        self._keep(hasher)
        self.signature, self.signed_count = signature, len(self.transactions)
        self._count(sum([len(transaction.payload) for transaction in batch]))
        return True

    def append_stored(self, parts: Sequence[tuple[Sequence[Transaction], str]], signer_id: str) -> bool:
        """Fill an empty log with signed batches; return whether the last signature, which covers all, is valid."""
        hasher = self._hash()
        for batch, signature in parts:
            try:
                hasher.update("".join(canonical(batch)).encode())
            except UnicodeEncodeError:
                return False
            self.transactions.extend(batch)
            self.signature, self.signed_count = signature, len(self.transactions)
            self._count(sum(len(transaction.payload) for transaction in batch))
        self._keep(hasher)
        return self.signature is not None and verify(self.signature, _signed_text(hasher), signer_id)

    def append_own(self, transaction: Transaction) -> None:
        """Append this node's own transaction; call `sign` before it is sent."""
        hasher = self._hash()
        hasher.update("".join(canonical([transaction])).encode())
        self.transactions.append(transaction)
        self._hasher = hasher

    def sign(self, agent: Agent) -> None:
        """Sign the transactions that were appended since the last signature."""
        if self.signed_count == len(self.transactions):
            return
        size = sum(len(transaction.payload) for transaction in self.transactions[self.signed_count :])
        self.signature, self.signed_count = agent.sign(_signed_text(self._hash())), len(self.transactions)
        self._count(size)
        self._keep(self._hasher)

    def pieces(self, start: int) -> list[tuple[int, int, str]]:
        """Return the log from `start` in verifiable pieces (start, end, signature), cut at the checkpoints."""
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

    def _hash(self) -> Any:
        """Return the hash of the log."""
        if self._hasher is None:
            self._hasher = blake3("".join(canonical(self.transactions)).encode())
        return self._hasher

    def _keep(self, hasher: Any) -> None:
        """Keep the hash of a long log. That of a short one is computed again: it takes more memory than most logs."""
        characters = sum(len(transaction.payload) for transaction in self.transactions[: _SHORT_LOG + 1])
        is_short = len(self.transactions) <= _SHORT_LOG and characters <= _SHORT_LOG_CHARACTERS
        self._hasher = None if is_short else hasher

    def _count(self, characters: int) -> None:
        self._since_checkpoint += characters
        if self._since_checkpoint > _MAX_TRANSACTION_CHARACTERS and self.signature is not None:
            if not isinstance(self.checkpoints, dict):
                self.checkpoints = {}
            self.checkpoints[len(self.transactions) - 1] = self.signature
            self._since_checkpoint = 0


def canonical(transactions: Iterable[Transaction]) -> list[str]:
    """Return the canonical JSON of each transaction, which is hashed and sent.

    Here, all texts are escaped, as in cojson's native code: anyone may sign a text that only begins as a cipher does.
    """
    texts: list[str] = []
    quoted: dict[str, str] = {}  # many transactions share a few keys
    for item in transactions:
        key, made_at = item.key_used, item.made_at
        time = made_at if made_at <= MAX_TIME else stable_json(made_at)
        meta = "" if item.meta is None else f',"meta":{quote_cipher(item.meta)}'
        if key is None:
            texts.append(f'{{"changes":{quote_cipher(item.payload)},"madeAt":{time}{meta},"privacy":"trusting"}}')
            continue
        if key not in quoted:
            quoted[key] = quote_cipher(key)
        texts.append(
            f'{{"encryptedChanges":{quote_cipher(item.payload)},"keyUsed":{quoted[key]},"madeAt":{time}{meta},'
            '"privacy":"private"}'
        )
    return texts


def next_time(time: int) -> int:
    """Return the first time after a time (ms) that JavaScript can represent."""
    return time + 1 if time < MAX_TIME else int(math.nextafter(time, math.inf))


def parse_transactions(raw: Sequence[Any], session: SessionId, after: int) -> list[Transaction]:
    """Check the shape of transactions from the wire; `reside.jazz.rules.permissions` decides whether they are valid.

    Args:
        raw: the transactions of a message.
        session: their log.
        after: how many transactions precede them in the log.

    Raises:
        InvalidContent: an item is not a transaction of the protocol.
    """
    author, found = intern(author_of(session)), []  # many transactions share authors and keys
    for index, item in enumerate(raw, after):
        if type(item) is not dict:
            raise InvalidContent("a transaction is not an object")
        get = item.get
        made_at, meta, privacy, key_used = get("madeAt"), get("meta"), get("privacy"), None
        if type(made_at) is not int:
            made_at = int(made_at) if type(made_at) is float and made_at.is_integer() else -1
        if not 0 <= made_at < _TIME_LIMIT:
            raise InvalidContent("a transaction's madeAt is not a non-negative integer of 64 bits")
        if privacy == "private":
            payload, key_used = get("encryptedChanges"), get("keyUsed")
            if type(key_used) is not str:
                raise InvalidContent("a private transaction has no key id")
            key_used = intern(key_used)
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
