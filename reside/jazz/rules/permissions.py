"""Permissions: the validity of every transaction, decided by each reader.

Sync servers relay everything that is signed, so the security of a platform depends on these pure functions. One pass
validates a group's transactions in the order of time (`reside.jazz.rules.ties` orders those of one millisecond), each
by its author's role at that point of the pass. The result
is a `GroupState`, which has every member's role at any time, including roles through parent groups
(docs/jazz-protocol.md, section 5). When later transactions arrive, the pass is resumed.

Invariants:
    A transaction that is not explicitly allowed is invalid. A group that extends itself, directly or through parents,
    gains no roles.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from reside.jazz.errors import InvalidContent
from reside.jazz.ids import EVERYONE, Json, is_co_id
from reside.jazz.rules.group_state import ADMINS, INHERITABLE, INVITES, NEVER, WRITERS, Entry, GroupState, Verdict
from reside.jazz.rules.inert import ASSIGNABLE, NOT_A_ROLE, inert_because, kind_of, the_change
from reside.jazz.rules.ties import EVERYBODY, Ruling, settle_tie
from reside.jazz.wire.encoding import parse_json
from reside.jazz.wire.session import Transaction

_EVERYONE_ROLES: Final = frozenset({"reader", "writer", "writeOnly", "revoked"})
_MAY_REVEAL: Final = ADMINS | INVITES
_MAY_REVEAL_ANY: Final = ADMINS | (INVITES - {"writeOnlyInvite"})
_NO_KEYS: Final[Mapping[str, Json]] = MappingProxyType({})
_WRITE_KEY_IS_SET: Final = "only admins and managers replace a write key"
"""The transaction still decides which key the member may reveal, as in JavaScript."""


class GroupValidator:
    """The validation pass over the transactions of a group or an account.

    Args:
        state: an empty state to fill. If two groups extend each other, its `find_parent` may return a state that is
            still being filled; the older of the two extensions is valid then.
        initial_admin: the account or agent that may make itself admin.
    """

    __slots__ = ("_changed_from", "_initial_admin", "_last", "_write_keys", "state")

    def __init__(self, state: GroupState, initial_admin: str) -> None:
        self.state = state
        self._initial_admin = initial_admin
        self._write_keys = _NO_KEYS
        self._last: tuple[int, str | None] = (-1, None)
        self._changed_from: int | None = None

    def can_resume(self, transactions: Iterable[Transaction]) -> bool:
        """Return whether all these transactions come after those already validated.

        Those of one millisecond are validated together, unless they are of one session.
        """
        last, session = self._last
        return all(
            item.made_at > last or (item.made_at == last and item.session == session)
            for item in transactions
            if not self._inert_because(item)
        )

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
        ordered = sorted(transactions, key=_when)
        start = 0
        while start < len(ordered):
            first, end = ordered[start], start + 1
            while end < len(ordered) and ordered[end].made_at == first.made_at:
                end += 1
            self._take(ordered[start:end])
            start = end
        state.cursor = None
        for item in ordered:
            if not item.is_private:
                item.changes = None  # the state has what counts, in less memory
        if self._changed_from is not None:
            state.forget_roles(self._changed_from)
        return self._changed_from

    def _take(self, tied: Sequence[Transaction]) -> None:
        """Validate all transactions of one millisecond, which are sorted by session."""
        verdicts = self.state.verdicts
        verdicts += [Verdict(item, why) for item in tied if (why := self._inert_because(item))]
        tied = [item for item in tied if not self._inert_because(item)]
        if not tied:
            return
        first = tied[0]
        self.state.cursor = first.made_at
        if first.session == tied[-1].session:
            for transaction in tied:
                self.settle(self.judge(transaction))
            self._last = first.made_at, first.session
        else:
            settle_tie(self, tied)
            self._last = first.made_at, None

    def _inert_because(self, transaction: Transaction) -> str:
        return inert_because(transaction, in_account=self.state.agent_id is not None)

    def judge(self, transaction: Transaction) -> Ruling:
        """Return the verdict on a transaction if it were the next, without taking it."""
        ruling = Ruling(transaction)
        if transaction.policy_refusal is not None:
            ruling.refusal = transaction.policy_refusal
            return ruling
        ruling.role = self.acting_role(transaction.author, transaction.made_at)
        ruling.refusal = self._refusal(ruling)
        return ruling

    def settle(self, ruling: Ruling) -> str | None:
        """Take the next transaction, with this verdict; see `Judge.settle`."""
        transaction, state = ruling.transaction, self.state
        state.verdicts.append(Verdict(transaction, ruling.refusal))
        if ruling.refusal is not None:
            if ruling.kind == "writeKey" and ruling.refusal == _WRITE_KEY_IS_SET:
                self._note_write_key(ruling)
            return None
        if ruling.role in ADMINS:
            state.latest = transaction.made_at
        if ruling.kind is None:
            self._note_change(NEVER)
            return None
        woken = self._apply(ruling)
        trusted = ruling.role in _MAY_REVEAL_ANY
        entry = Entry(transaction.made_at, ruling.change.get("value"), transaction, trusted)
        self._note_change(state.add(ruling.key, entry))
        return woken

    def has_power(self, member: str) -> bool:
        """Return whether a member has a role that may change the group."""
        return self.acting_role(member, self.state.cursor or 0) in _MAY_REVEAL

    def acting_role(self, member: str, at: int) -> str | None:
        """Return a member's role for changes of the group: direct or through a parent, never through `everyone`."""
        role = self._direct(member)
        for parent_id, mappings in self.state.parents.items():
            mapping = mappings[-1][1]
            parent = self.state.find_parent(parent_id) if mapping != "revoked" else None
            if not isinstance(parent, GroupState):
                continue
            inherited = parent.role_of(member, at)
            if inherited in INHERITABLE and inherited is not None:
                resolved = inherited if mapping == "extend" else mapping
                if _is_higher(resolved, role):
                    role = resolved
        return role

    def _refusal(self, ruling: Ruling) -> str | None:
        """Return why the next transaction is invalid, and note what it sets."""
        transaction, role = ruling.transaction, ruling.role
        if transaction.is_private:
            return None if role == "admin" else "only an admin may write privately to an account"
        change = the_change(transaction)
        ruling.key, ruling.change = str(change["key"]), change
        ruling.kind = kind_of(ruling.key)
        return self._refusal_of_set(ruling)

    def _refusal_of_set(self, ruling: Ruling) -> str | None:
        transaction, role, key, kind = ruling.transaction, ruling.role, ruling.key, ruling.kind
        if kind == "setting":
            return None if role in ADMINS else f"only admins and managers set {key}"
        if kind == "reveal":
            allowed = role in _MAY_REVEAL or self._reveals_own_write_key(transaction.author, key)
            return None if allowed else "only admins and managers reveal keys"
        if kind == "parent":
            return self._refusal_of_parent(ruling, key.removeprefix("parent_"))
        if kind == "writeKey":
            return self._refusal_of_write_key(ruling, key.removeprefix("writeKeyFor_"))
        affected = self.acting_role(key, transaction.made_at)
        is_initial_admin = transaction.author == self._initial_admin
        assigned = ruling.change.get("value")
        return refusal_of_role(transaction.author, role, key, affected, assigned, is_initial_admin=is_initial_admin)

    def takes_away(self, ruling: Ruling) -> bool:
        """Return whether a valid transaction ends or lowers a role."""
        if ruling.kind == "parent":
            mappings = self.state.parents.get(ruling.key.removeprefix("parent_"))
            before, now = mappings[-1][1] if mappings else None, _mapping_of(ruling.change)
        elif ruling.kind == "role":
            before, now = self._direct(ruling.key), str(ruling.change.get("value"))
        else:
            return False
        return now == "revoked" or (before not in (None, "revoked", now) and not _is_higher(now, before))

    def _apply(self, ruling: Ruling) -> str | None:
        """Note a valid change before it is added; return whose refused transactions may be valid now, as `settle`."""
        kind, key, value = ruling.kind, ruling.key, ruling.change.get("value")
        if kind == "role":
            if self._direct(key) == "admin" and value != "admin":
                return EVERYBODY
            return key if value in _MAY_REVEAL else None
        if kind == "writeKey":
            self._note_write_key(ruling)
            return key.removeprefix("writeKeyFor_")
        if kind == "parent":
            parent_id, mapping = key.removeprefix("parent_"), _mapping_of(ruling.change)
            self.state.parents.setdefault(parent_id, []).append((ruling.transaction.made_at, mapping))
            return EVERYBODY
        return None

    def _direct(self, member: str) -> str | None:
        """Return the direct role that a member was given last, which may be `revoked`."""
        role = self.state.get(member)
        return role if isinstance(role, str) else None

    def _note_write_key(self, ruling: Ruling) -> None:
        if not isinstance(self._write_keys, dict):
            self._write_keys = {}
        self._write_keys[ruling.key.removeprefix("writeKeyFor_")] = ruling.change.get("value")

    def _note_change(self, since: int) -> None:
        self._changed_from = since if self._changed_from is None else min(since, self._changed_from)

    def _reveals_own_write_key(self, author: str, key: str) -> bool:
        place = key.find("_for_")
        revealed = key[: place if place >= 0 else key.find("_sealedFor_")]
        return revealed != "" and self._write_keys.get(author) == revealed

    def _refusal_of_parent(self, ruling: Ruling, parent_id: str) -> str | None:
        if ruling.role not in ADMINS:
            return "only admins and managers extend a group"
        parent = self.state.find_parent(parent_id) if is_co_id(parent_id) else "not a group"
        if isinstance(parent, str):
            if parent == "missing":
                self.state.add_missing(parent_id)
            return f"the parent group is {parent}"
        if parent.cursor is not None and ruling.transaction.made_at >= parent.cursor:
            return "the parent group extends this group"
        if parent.extends(self.state.co_id):
            return "the parent group extends this group"
        return None

    def _refusal_of_write_key(self, ruling: Ruling, member: str) -> str | None:
        role = ruling.role
        if role not in ADMINS and role != "writeOnlyInvite" and member != ruling.transaction.author:
            return "only admins and managers set another's write key"
        if ruling.key in self.state.entries and role not in ADMINS:
            return _WRITE_KEY_IS_SET
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
    if not isinstance(assigned, str) or assigned not in ASSIGNABLE:
        return NOT_A_ROLE
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


def _mapping_of(change: Mapping[str, Json]) -> str:
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


def _when(transaction: Transaction) -> tuple[int, str]:
    return transaction.made_at, transaction.session
