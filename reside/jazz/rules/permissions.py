"""Who may do what: the validity of every transaction, decided by the reader.

Sync servers relay whatever is signed, so all of a platform's security rests on these pure functions. A group's
transactions are judged in one pass in the order of time, each by its author's role as far as the pass came; the outcome
is a `GroupState`, which knows every member's role at any time, also through parent groups (docs/jazz-protocol.md,
section 5). A pass can go on where it ended when later transactions arrive.

Invariants:
    A transaction that is not explicitly allowed is invalid. A group that extends itself, over any number of parents,
    gains nothing.
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
    """The pass over the transactions of a group or an account: roles as far as it came.

    Args:
        state: Empty; it is filled. Where two groups extend each other, its `find_parent` may give a state that is
            still being filled: the older of the two extensions counts then.
        initial_admin: The account or agent that may make itself admin.
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

    def can_resume(self, transactions: Iterable[Transaction]) -> bool:
        """Whether these transactions all stand behind those that were judged."""
        return all(item.when >= self._last for item in transactions)

    @property
    def last_time(self) -> int:
        """Time of the last transaction that was judged, -1 before the first."""
        return self._last[0]

    def resume(self, transactions: Iterable[Transaction]) -> int | None:
        """Judges more transactions, each session's in its own order; none of them may stand before one judged.

        Returns:
            The time from which on roles may differ from before; None if none of the transactions counts.
        """
        state, self._changed_from = self.state, None
        for transaction in sorted(transactions, key=_when):
            state.cursor = transaction.made_at
            refusal = transaction.barred or self._refusal(transaction)
            state.verdicts.append(Verdict(transaction, refusal))
            if refusal is None:
                state.latest = transaction.made_at
            self._last = transaction.when
        state.cursor = None
        if self._changed_from is not None:
            state.forget_roles(self._changed_from)
        return self._changed_from

    def acting_role(self, member: str, at: int) -> str | None:
        """The role by which a member changes the group: its own or one through a parent, never everyone's."""
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
        """Judges the next transaction and takes it into the state if it is valid."""
        role = self.acting_role(transaction.author, transaction.made_at)
        if transaction.is_private:
            if self.state.agent_id is None:
                return "private transactions don't count in groups"
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
            self._note_change(self.state.take(key, entry))
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
        bootstrap = transaction.author == self._initial_admin
        refusal = refusal_of_role(transaction.author, role, key, affected, value, may_begin=bootstrap)
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
            return "a write key can be replaced by admins and managers only"
        self._set_write_keys.add(key)
        return None


def validate_group(state: GroupState, transactions: Iterable[Transaction], initial_admin: str) -> None:
    """Judges all transactions of a group or an account at once; see `GroupValidator`."""
    GroupValidator(state, initial_admin).resume(transactions)


def refusal_of_role(  # noqa: PLR0911 - one return a rule of the protocol
    author: str, role: str | None, member: str, affected: str | None, assigned: Json, *, may_begin: bool = False
) -> str | None:
    """Why an assignment of a role does not count; None if it does.

    Args:
        author: Who assigns.
        role: The author's role by which it acts.
        member: Who gets the role.
        affected: The member's role so far.
        assigned: The role to be.
        may_begin: The author is the group's initial admin, which makes itself admin first.
    """
    if not isinstance(assigned, str) or assigned not in _ASSIGNABLE:
        return "not a role"
    if member == EVERYONE and assigned not in _EVERYONE_ROLES:
        return f"everyone can't be {assigned}"
    if role is None and may_begin and member == author and assigned == "admin":
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
    return f"a role is given by admins, managers and invites, not by {role or 'a stranger'}"


def refusal_of_write(owner: GroupState, transaction: Transaction) -> str | None:
    """Why a transaction of a value does not count under its owning group; None if it does."""
    role = owner.role_of(transaction.author, transaction.made_at)
    if role in WRITERS or (role == "reader" and _leave_branch_pointer(transaction)):
        return None
    return f"its author's role at that time is {role or 'none'}"


def _leave_branch_pointer(transaction: Transaction) -> bool:
    """Whether a transaction tells of a branch that its author owns, which readers may; nothing else of it counts."""
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
    """The changes of a trusting transaction; None if they are not a JSON array."""
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
    """The role that a parent's members get. What is no text is no role, but as in JavaScript no revocation either."""
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
