"""Deletion of values: an admin writes a marker, which invalidates everything else in the value.

A deletion is one trusting transaction without changes and with the meta `{"deleted": <id>}`, alone in a new delete
session. It can't be undone. It is validated like any other write: by its author's role at its time, and again when the
owning group changes. Groups and accounts can't be deleted, because other values depend on them
(docs/jazz-protocol.md, section 3).
"""

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import CoId, Json, is_delete_session
from reside.jazz.rules.group_state import GroupState
from reside.jazz.wire.encoding import parse_json
from reside.jazz.wire.header import Header
from reside.jazz.wire.session import Transaction


def deletion_meta(co_id: CoId) -> dict[str, Json]:
    """Return the meta of a transaction that deletes a value."""
    return {"deleted": co_id}


def marks_deletion(transaction: Transaction) -> bool:
    """Return whether a transaction marks a value as deleted; `refusal_of_deletion` decides whether it is valid."""
    return _named(transaction) is not None


def _named(transaction: Transaction) -> str | None:
    """Return the id of the value that a transaction deletes; None if it deletes none."""
    if transaction.meta is None or transaction.is_private or not is_delete_session(transaction.session):
        return None
    try:
        meta = parse_json(transaction.meta)
    except InvalidContent:
        return None
    named = meta.get("deleted") if isinstance(meta, dict) else None
    return named if isinstance(named, str) else None


def refusal_of_deletion(transaction: Transaction, header: Header, owner: GroupState | None) -> str | None:
    """Return why a deletion is invalid; None if it is valid.

    Args:
        transaction: the transaction that marks the deletion.
        header: the value's header.
        owner: the owning group; None if it is not loaded.
    """
    if header.is_group:
        return "groups and accounts can't be deleted"
    if header.owner is None:
        return "a value without an owner can't be deleted"
    if owner is None:
        return "the owning group is not loaded"
    if _named(transaction) != header.co_id:
        return "it names another value to delete"
    if transaction.policy_refusal is not None:
        return transaction.policy_refusal
    return _refusal_by_role(transaction, owner)


def _refusal_by_role(transaction: Transaction, owner: GroupState) -> str | None:
    if owner.agent_id is not None and transaction.author == owner.co_id:
        return None  # an account always deletes what it owns, whatever it made of its own role
    role = owner.role_of(transaction.author, transaction.made_at)
    return None if role == "admin" else f"only an admin deletes a value, its author's role is {role or 'none'}"
