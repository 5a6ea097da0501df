"""Permissions: the validity of every transaction, decided by each reader.

Sync servers relay everything that is signed, so the security of a platform depends on these pure functions. One pass
validates a group's transactions in the order of time, each by its author's role at that point of the pass. The result
is a `GroupState`, which has every member's role at any time, including roles through parent groups
(docs/jazz-protocol.md, section 5). When later transactions arrive, the pass is resumed.

Invariants:
    A transaction that is not explicitly allowed is invalid. A group that extends itself, directly or through parents,
    gains no roles.
"""

from collections.abc import Iterable
from typing import Any, Final

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import EVERYONE, Json, is_co_id
from reside.jazz.rules.group_state import ADMINS, INHERITABLE, INVITES, NEVER, WRITERS, Entry, GroupState, Verdict
from reside.jazz.wire.encoding import parse_json
from reside.jazz.wire.session import Transaction

_ASSIGNABLE: Final = WRITERS | {"reader", "revoked"} | INVITES
_EVERYONE_ROLES: Final = frozenset({"reader", "writer", "writeOnly", "revoked"})
_MAY_REVEAL: Final = ADMINS | INVITES
_MAY_REVEAL_ANY: Final = ADMINS | (INVITES - {"writeOnlyInvite"})


class GroupValidator:
    """The validation pass over the transactions of a group or an account.

    Args:
        state: an empty state to fill. If two groups extend each other, its `find_parent` may return a state that is
            still being filled; the older of the two extensions is valid then.
        initial_admin: the account or agent that may make itself admin.
    """

    def __init__(self, state: GroupState, initial_admin: str) -> None:
        self.state = state
        self._initial_admin = initial_admin
        self._direct: dict[str, str] = {}
        self._parents: dict[str, str] = {}
        self._write_keys: dict[str, Json] = {}
        self._set_write_keys: set[str] = set()
        self._last: tuple[int, str] = (-1, "")
        self._changed_from: int | None = None
        self._role: str | None = None

    def can_resume(self, transactions: Iterable[Transaction]) -> bool:
        """Return whether all these transactions come after those already validated."""
        return all(item.when >= self._last for item in transactions)

    @property
    def last_time(self) -> int:
        """The time of the last validated transaction; -1 if there is none."""
        return self._last[0]

    def resume(self, transactions: Iterable[Transaction]) -> int | None:
        """Validate more transactions, which must come after all those already validated.

        Args:
            transactions: those of one session must be in the session's order.

        Returns:
            the time from which roles may differ from before; None if none of the transactions is valid.
        """
        state, self._changed_from = self.state, None
        for transaction in sorted(transactions, key=_when):
            state.cursor = transaction.made_at
            refusal = transaction.policy_refusal or self._refusal(transaction)
            state.verdicts.append(Verdict(transaction, refusal))
            if refusal is None and self._role in ADMINS:
                state.latest = transaction.made_at
            self._last = transaction.when
        state.cursor = None
        if self._changed_from is not None:
            state.forget_roles(self._changed_from)
        return self._changed_from

    def acting_role(self, member: str, at: int) -> str | None:
        """Return a member's role for changes of the group: direct or through a parent, never through `everyone`."""
        role = self._direct.get(member)
        for parent_id, mapping in self._parents.items():
            parent = self.state.find_parent(parent_id)
            if not isinstance(parent, GroupState):
                continue
            inherited = parent.role_of(member, at)
            if inherited in INHERITABLE and inherited is not None:
                resolved = inherited if mapping == "extend" else mapping
                if _is_higher(resolved, role):
                    role = resolved
        return role

    def _refusal(self, transaction: Transaction) -> str | None:
        """Validate the next transaction, and add it to the state if it is valid."""
        role = self._role = self.acting_role(transaction.author, transaction.made_at)
        if transaction.is_private:
            if self.state.agent_id is None:
                return "private transactions are invalid in groups"
            if role != "admin":
                return "only an admin may write privately to an account"
            self._note_change(NEVER)
            return None
        changes = decode_trusting(transaction)
        if changes is None or len(changes) != 1:
            return "a group's transaction must have exactly one change"
        change = changes[0]
        if not isinstance(change, dict) or change.get("op") != "set" or not isinstance(change.get("key"), str):
            return "a group's transaction must set a key"
        key = change["key"]
        refusal = self._refusal_of_set(transaction, role, key, change)
        if refusal is None:
            trusted = role in _MAY_REVEAL_ANY
            entry = Entry(transaction.made_at, change.get("value"), transaction, trusted)
            self._note_change(self.state.add(key, entry))
        return refusal

    def _note_change(self, since: int) -> None:
        self._changed_from = since if self._changed_from is None else min(since, self._changed_from)

    def _refusal_of_set(
        self, transaction: Transaction, role: str | None, key: str, change: dict[str, Json]
    ) -> str | None:
        value = change.get("value")
        if key in ("readKey", "groupSealer", "profile", "root"):
            return None if role in ADMINS else f"only admins and managers set {key}"
        if _is_key_reveal(key):
            allowed = role in _MAY_REVEAL or self._reveals_own_write_key(transaction.author, key)
            return None if allowed else "only admins and managers reveal keys"
        if key.startswith("parent_"):
            mapping = _mapping_of(change)
            return self._refusal_of_parent(transaction, role, key.removeprefix("parent_"), mapping)
        if key.startswith("child_"):
            return "child extensions are obsolete"
        if key.startswith("writeKeyFor_"):
            return self._refusal_of_write_key(transaction, role, key, value)
        affected = self.acting_role(key, transaction.made_at)
        is_initial_admin = transaction.author == self._initial_admin
        refusal = refusal_of_role(transaction.author, role, key, affected, value, is_initial_admin=is_initial_admin)
        if refusal is None and isinstance(value, str):
            self._direct[key] = value
        return refusal

    def _reveals_own_write_key(self, author: str, key: str) -> bool:
        place = key.find("_for_")
        revealed = key[: place if place >= 0 else key.find("_sealedFor_")]
        return revealed != "" and self._write_keys.get(author) == revealed

    def _refusal_of_parent(
        self, transaction: Transaction, role: str | None, parent_id: str, mapping: str
    ) -> str | None:
        if role not in ADMINS:
            return "only admins and managers extend a group"
        parent = self.state.find_parent(parent_id) if is_co_id(parent_id) else "not a group"
        if isinstance(parent, str):
            if parent == "missing":
                self.state.missing.add(parent_id)
            return f"the parent group is {parent}"
        if parent.cursor is not None and transaction.made_at >= parent.cursor:
            return "the parent group extends this group"
        if parent.extends(self.state.co_id):
            return "the parent group extends this group"
        if mapping == "revoked":
            self._parents.pop(parent_id, None)
        else:
            self._parents[parent_id] = mapping
        self.state.parents.setdefault(parent_id, []).append((transaction.made_at, mapping))
        return None

    def _refusal_of_write_key(self, transaction: Transaction, role: str | None, key: str, value: Json) -> str | None:
        member = key.removeprefix("writeKeyFor_")
        if role not in ADMINS and role != "writeOnlyInvite" and member != transaction.author:
            return "only admins and managers set another's write key"
        self._write_keys[member] = value
        if key in self._set_write_keys and role not in ADMINS:
            return "only admins and managers replace a write key"
        self._set_write_keys.add(key)
        return None


def validate_group(state: GroupState, transactions: Iterable[Transaction], initial_admin: str) -> None:
    """Validate all transactions of a group or an account at once; see `GroupValidator`."""
    GroupValidator(state, initial_admin).resume(transactions)


def refusal_of_role(  # noqa: PLR0911 - one return for each rule of the protocol
    author: str, role: str | None, member: str, affected: str | None, assigned: Json, *, is_initial_admin: bool = False
) -> str | None:
    """Return why an assignment of a role is invalid; None if it is valid.

    Args:
        author: the account or agent that assigns the role.
        role: the author's acting role.
        member: the account or agent that gets the role.
        affected: the member's previous role.
        assigned: the new role.
        is_initial_admin: whether the author is the group's initial admin, which may make itself admin.
    """
    if not isinstance(assigned, str) or assigned not in _ASSIGNABLE:
        return "not a role"
    if member == EVERYONE and assigned not in _EVERYONE_ROLES:
        return f"everyone can't be {assigned}"
    if role is None and is_initial_admin and member == author and assigned == "admin":
        return None
    if member == author and assigned == "revoked":
        return None
    if role == "admin":
        demotes = affected == "admin" and assigned != "admin" and member != author
        return "admins can't demote admins" if demotes else None
    if role == "manager":
        forbidden = affected == "admin" or assigned in ("admin", "adminInvite", "managerInvite")
        return "managers can't change or make admins" if forbidden else None
    if role in INVITES and role is not None and assigned == role.removesuffix("Invite"):
        return None
    return f"a role is given by admins, managers and invites, not by {role or 'a non-member'}"


def refusal_of_write(owner: GroupState, transaction: Transaction) -> str | None:
    """Return why the owning group makes a transaction of a value invalid; None if it is valid."""
    role = owner.role_of(transaction.author, transaction.made_at)
    if role in WRITERS or (role == "reader" and _keep_branch_pointer(transaction)):
        return None
    return f"its author's role at that time is {role or 'none'}"


def _keep_branch_pointer(transaction: Transaction) -> bool:
    """Reduce a transaction to the pointer to a branch that its author owns, which readers may write.

    Returns:
        whether the transaction contains such a pointer.
    """
    if transaction.is_private or transaction.meta is None:
        return False
    try:
        meta = parse_json(transaction.meta)
    except InvalidContent:
        return False
    if not isinstance(meta, dict) or not meta.get("branch") or not meta.get("ownerId"):
        return False
    transaction.changes = []
    transaction.meta_value = {"branch": meta["branch"], "ownerId": meta["ownerId"]}
    return True


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


def _mapping_of(change: dict[str, Json]) -> str:
    """Return the role of a parent's members. As in JavaScript, a non-string is neither a role nor a revocation."""
    if "value" not in change:
        return "revoked"
    value = change["value"]
    return value if isinstance(value, str) else "?"


def _is_higher(role: str, than: str | None) -> bool:
    if role == "revoked":
        return False
    if than is None or than == "revoked":
        return True
    if than == "admin":
        return False
    if role == "admin":
        return True
    if than == "manager":
        return False
    return role == "manager" or (role == "writer" and than == "reader")


def _is_key_reveal(key: str) -> bool:
    if "_for_everyone" in key:
        return True
    if not key.startswith("key_"):
        return False
    return any(part in key for part in ("_for_key", "_for_sealer", "_for_co", "_sealedFor_sealer"))


def _when(transaction: Transaction) -> tuple[int, str]:
    return transaction.when
