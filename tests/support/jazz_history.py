"""Read a sync server's database: every transaction, the key that encrypts it, and the accounts that have that key.

A node is not sufficient, because it shows only the newest value, while deleted and overwritten values remain in the
history.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reside.jazz.rules.keys import find_secret
from reside.jazz.wire.crypto import decryptor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from reside.jazz import Node

_REVEALS = ("_for_", "_sealedFor_")
_QUERY = """
    SELECT coValues.id, coValues.header, sessions.sessionID, transactions.idx, transactions.tx
    FROM transactions
    JOIN sessions ON sessions.rowID = transactions.ses
    JOIN coValues ON coValues.rowID = sessions.coValue
    ORDER BY coValues.rowID, sessions.rowID, transactions.idx
"""


@dataclass(frozen=True)
class Stored:
    """One transaction.

    Attributes:
        value: id of the value.
        owner: id of the group or account that owns it; None for groups and accounts themselves.
        session: the session that wrote it.
        index: its position in the session.
        text: its changes as JSON text, encrypted if there is a key.
        key: id of the key that encrypts it; None: it is not encrypted.
        meta: the text of its meta object, encrypted like the changes; empty if there is none.
    """

    value: str
    owner: str | None
    session: str
    index: int
    text: str
    key: str | None
    meta: str


class History:
    """All transactions of a sync server at one moment, by the age of their values.

    Attributes:
        transactions: every transaction, including those of deleted values.
    """

    def __init__(self, database: Path) -> None:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            self.transactions = [_stored(*row) for row in connection.execute(_QUERY)]
        self._revealed: dict[str, set[str]] = defaultdict(set)
        for member, value in self._plain_members():
            for infix in _REVEALS:
                key, found, holder = member.partition(infix)
                if found and key.startswith("key_z"):
                    self._revealed[key].add(holder)
            if member == "groupSealer":
                key, _, sealer = str(value).rpartition("@")
                self._revealed[sealer].add(key)

    def holders(self, key: str) -> set[str]:
        """Return the accounts and agents to which a key was ever revealed, directly or through other keys.

        They include `everyone` if the key is public. Invalid reveals count, too.
        """
        found: set[str] = set()
        ways, seen = [key], {key}
        while ways:
            for holder in self._revealed[ways.pop()] - seen:
                seen.add(holder)
                if holder.startswith(("key_z", "sealer_z")) and "/" not in holder:
                    ways.append(holder)
                else:
                    found.add(holder)
        return found

    def containing(self, texts: Iterable[str]) -> list[Stored]:
        """Return the transactions whose stored form, without decryption, contains one of the texts."""
        wanted = tuple(texts)
        return [item for item in self.transactions if any(text in item.text + item.meta for text in wanted)]

    async def decrypted_by(self, node: Node) -> dict[Stored, str]:
        """Return the changes of every encrypted transaction that the node's account can decrypt."""
        found = {}
        for owner in {item.owner for item in self.transactions if item.owner is not None}:
            await node.load(owner)
        for item in self.transactions:
            if item.owner is None or item.key is None:
                continue
            secret = find_secret(node._host.store, item.owner, item.key)
            if secret is not None:
                found[item] = decryptor(secret, item.value)(item.text, item.session, item.index).decode()
        return found

    def _plain_members(self) -> Iterator[tuple[str, Any]]:
        for item in self.transactions:
            if item.owner is None and item.key is None:
                for change in json.loads(item.text):
                    if isinstance(change, dict) and change.get("op") == "set":
                        yield str(change["key"]), change["value"]


def _stored(value: str, header: str, session: str, index: int, text: str) -> Stored:
    ruleset = json.loads(header)["ruleset"]
    transaction = json.loads(text)
    changes = transaction.get("encryptedChanges", transaction.get("changes"))
    meta = str(transaction.get("meta", ""))
    return Stored(value, ruleset.get("group"), session, index, changes, transaction.get("keyUsed"), meta)


def carriers(seen: dict[Stored, str], texts: Iterable[str]) -> list[Stored]:
    """Return the transactions whose decrypted changes contain one of the texts."""
    wanted = tuple(texts)
    return [item for item, changes in seen.items() if any(text in changes for text in wanted)]
