"""Decryption and parsing of transactions' changes, in batches.

The result is stored with the transaction until its key may be wrong. A transaction that can't be read, because its key
is not known (yet) or because it is malformed, is skipped, and tried again on the next request.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from reside.jazz.errors import InvalidContent
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.rules.inert import decode_trusting
from reside.jazz.rules.keys import find_secret
from reside.jazz.wire.crypto import decryptor
from reside.jazz.wire.encoding import parse_each, parse_json
from reside.jazz.wire.merging import Origin, origin_of
from reside.jazz.wire.session import Transaction

_NONE: Final[frozenset[str]] = frozenset()


class Decoder:
    """Decode the transactions of one value.

    Args:
        store: contains the keys.
        core: the value.
    """

    __slots__ = ("_branch", "_core", "_merged", "_missing_keys", "_store")

    def __init__(self, store: Store, core: Core) -> None:
        self._store = store
        self._core = core
        self._missing_keys = _NONE
        self._merged: list[Transaction] | None = None
        is_branch = core.header is not None and core.header.source is not None
        self._branch = core.co_id if is_branch else None

    @property
    def has_merged(self) -> bool:
        """Whether any transaction was merged from a branch."""
        return self._merged is not None

    def decode(self, transactions: Sequence[Transaction]) -> None:
        """Decode the changes and the meta of transactions, as far as they are not and can be."""
        private: dict[str, list[Transaction]] = {}
        for item in transactions:
            if item.changes is None and item.key_used is None:
                decode_trusting(item)
                item.meta_value = _meta(item.meta)
            elif item.changes is None and item.key_used is not None:
                private.setdefault(item.key_used, []).append(item)
        for key_id, items in private.items():
            secret = self._secret(key_id)
            if secret is not None:
                _decrypt(items, decryptor(secret, self._core.co_id))

    def readable(self, transactions: Sequence[Transaction]) -> list[Transaction]:
        """Decode transactions; return those that can be read."""
        self.decode(transactions)
        for item in transactions:
            if item.meta_value is not None and "mi" in item.meta_value:
                item.origin = origin_of(item.meta_value, item.made_at, item.session, self._before(item))
                if self._merged is None:
                    self._merged = []
                self._merged.append(item)
            if self._branch is not None and item.origin is None:
                item.origin = Origin(item.session, item.index, item.made_at, self._branch)
        return [item for item in transactions if item.changes is not None]

    def _before(self, item: Transaction) -> Transaction | None:
        return self._core.sessions[item.session].transactions[item.index - 1] if item.index else None

    def forget(self) -> None:
        """Discard everything that was decrypted."""
        for item in self._core.transactions:
            if item.is_private:
                item.changes = item.meta_value = item.origin = None

    def forget_validity(self) -> bool:
        """Discard what depends on the validity of transactions: branch pointers, and the origins of merged ones.

        Returns:
            whether there was any branch pointer.
        """
        for item in self._merged or ():
            item.origin = None
        self._merged = None
        found = [
            item
            for item in self._core.transactions
            if item.meta_value is not None and "ownerId" in item.meta_value and not item.is_private
        ]
        for item in found:
            item.changes = item.meta_value = item.origin = None
        return bool(found)

    def has_new_key(self) -> bool:
        """Return whether a missing key has become known."""
        missing, self._missing_keys = self._missing_keys, _NONE
        return bool([key_id for key_id in missing if self._secret(key_id) is not None])

    def _secret(self, key_id: str) -> str | None:
        owner = None if self._core.header is None else self._core.header.owner
        if owner is None or key_id in self._missing_keys:
            return None
        secret = find_secret(self._store, owner, key_id)
        if secret is None:
            self._missing_keys |= {key_id}
        return secret


def _decrypt(items: Iterable[Transaction], open_text: Callable[[str, str, int], bytes]) -> None:
    opened, texts = [], []
    for item in items:
        try:
            texts.append(open_text(item.payload, item.session, item.index))
        except InvalidContent:
            continue
        opened.append(item)
    for item, changes in zip(opened, parse_each(texts), strict=True):
        if isinstance(changes, list):
            try:
                meta = None if item.meta is None else _meta(open_text(item.meta, item.session, item.index))
            except InvalidContent:
                continue
            item.changes, item.meta_value = changes, meta


def _meta(text: str | bytes | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        meta = parse_json(text)
    except InvalidContent:
        return None
    return meta if isinstance(meta, dict) else None
