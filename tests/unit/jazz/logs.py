"""Jazz logs without a network: transactions of any author, content and time."""

from __future__ import annotations

import json
from typing import Any

from reside.jazz.ids import SessionId
from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.permissions import validate_group
from reside.jazz.wire.session import Transaction


class Log:
    """Collects transactions in their order of arrival; each author writes one session, unless another is named."""

    def __init__(self) -> None:
        self.transactions: list[Transaction] = []
        self._counts: dict[str, int] = {}

    def add(
        self, author: str, made_at: int, changes: list[Any], *, private: bool = False, tail: str = "z1"
    ) -> Transaction:
        """Return a transaction of an author's session with this ending; a private one is already decrypted."""
        session = SessionId(f"{author}_session_{tail}")
        index = self._counts.get(session, 0)
        self._counts[session] = index + 1
        key = "key_z1" if private else None
        item = Transaction(session, index, made_at, json.dumps(changes), key, None, author)
        item.changes = json.loads(item.payload)
        self.transactions.append(item)
        return item

    def set(self, author: str, made_at: int, key: str, value: Any, *, tail: str = "z1") -> Transaction:
        """Set one key."""
        return self.add(author, made_at, [{"op": "set", "key": key, "value": value}], tail=tail)


def judge(log: Log, *, admin: str, co_id: str = "co_zGroup", groups: dict[str, GroupState] | None = None) -> GroupState:
    """Return the state of a group of these transactions; `groups` are its possible parents."""
    state = GroupState(co_id, None, lambda parent: (groups or {}).get(parent, "missing"))
    validate_group(state, log.transactions, admin)
    return state


def refusals(state: GroupState) -> list[str | None]:
    """Return why transactions don't count, in the order of time."""
    return [verdict.refusal for verdict in state.verdicts]
