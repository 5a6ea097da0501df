"""Transactions of a group that can never count, whatever the roles: they are decided once, and not ordered with others.

Anyone can write to a group, with any date. What is decided here does not restart a validation pass, however it is
dated, and is parsed once.
"""

from collections.abc import Mapping
from typing import Any, Final

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import Json, is_delete_session
from reside.jazz.rules.group_state import INVITES, WRITERS
from reside.jazz.rules.ties import Kind
from reside.jazz.wire.encoding import parse_json
from reside.jazz.wire.session import Transaction

ASSIGNABLE: Final = WRITERS | {"reader", "revoked"} | INVITES
MAY_COUNT: Final = ""
NOT_A_ROLE: Final = "not a role"


def inert_because(transaction: Transaction, *, in_account: bool) -> str:
    """Return why a transaction of a group can never count; `MAY_COUNT` if that depends on roles.

    Args:
        transaction: the transaction, which remembers the answer.
        in_account: whether it is an account's, in which private transactions may count.
    """
    if transaction.inert is None:
        transaction.inert = _inert_because(transaction, in_account)
    return transaction.inert


def _inert_because(transaction: Transaction, in_account: bool) -> str:
    if is_delete_session(transaction.session):
        return "groups and accounts can't be deleted"
    if transaction.is_private:
        return MAY_COUNT if in_account else "private transactions are invalid in groups"
    changes = decode_trusting(transaction)
    if changes is None or len(changes) != 1:
        return "a group's transaction must have exactly one change"
    change = the_change(transaction)
    return _inert_change_because(change) if change else "a group's transaction must set a key"


def _inert_change_because(change: Mapping[str, Json]) -> str:
    kind, value = kind_of(str(change["key"])), change.get("value")
    if kind == "child":
        return "child extensions are obsolete"
    is_role = isinstance(value, str) and value in ASSIGNABLE
    return NOT_A_ROLE if kind == "role" and not is_role else MAY_COUNT


def the_change(transaction: Transaction) -> Mapping[str, Json]:
    """Return the one change of a transaction; an empty one if that sets no key."""
    changes = transaction.changes if transaction.is_private else decode_trusting(transaction)
    change = changes[0] if changes else None
    if not isinstance(change, dict) or change.get("op") != "set" or not isinstance(change.get("key"), str):
        return {}
    return change


def decode_trusting(transaction: Transaction) -> list[Any] | None:
    """Return the changes of a trusting transaction; None if they are not a JSON array."""
    if transaction.changes is None:
        try:
            changes = parse_json(transaction.payload)
        except InvalidContent:
            return None
        if not isinstance(changes, list):
            return None
        transaction.changes = changes
    return transaction.changes


def kind_of(key: str) -> Kind:
    """Return what a key of a group is for. The order matters: a key may have the form of several."""
    if key in ("readKey", "groupSealer", "profile", "root"):
        return "setting"
    if _is_key_reveal(key):
        return "reveal"
    if key.startswith("parent_"):
        return "parent"
    if key.startswith("child_"):
        return "child"
    return "writeKey" if key.startswith("writeKeyFor_") else "role"


def _is_key_reveal(key: str) -> bool:
    if "_for_everyone" in key:
        return True
    if not key.startswith("key_"):
        return False
    return any(part in key for part in ("_for_key", "_for_sealer", "_for_co", "_sealedFor_sealer"))
