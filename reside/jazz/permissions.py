"""Who may do what: the validity of every transaction, decided by the reader.

Sync servers relay whatever is signed, so all of a platform's security rests on these pure functions. A group's
transactions are judged in one pass in the order of time, each by its author's role as far as the pass came; the outcome
is a `GroupState`, which knows every member's role at any time, also through parent groups (jazz-protocol.md §5).

Invariants:
    A transaction that is not explicitly allowed is invalid. Roles through a parent are looked up in the parent's own
    validated state, at the transaction's time. A group that extends itself, over any number of parents, gains nothing.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .encoding import parse_json
from .errors import InvalidContent
from .ids import EVERYONE, Json, is_co_id
from .session import Transaction

WRITERS: Final = frozenset({"admin", "manager", "writer", "writeOnly"})
READERS: Final = frozenset({"admin", "manager", "writer", "reader"})
KEY_HOLDERS: Final = READERS | {"adminInvite", "writerInvite", "readerInvite"}
ADMINS: Final = frozenset({"admin", "manager"})
INVITES: Final = frozenset({"adminInvite", "managerInvite", "writerInvite", "readerInvite", "writeOnlyInvite"})
_ASSIGNABLE: Final = WRITERS | {"reader", "revoked"} | INVITES
_EVERYONE_ROLES: Final = frozenset({"reader", "writer", "writeOnly", "revoked"})
_INHERITABLE: Final = READERS
_MAPPINGS: Final = READERS | {"extend"}
_MAX_DEPTH: Final = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """One valid assignment of a key."""

    made_at: int
    value: Json
    transaction: Transaction
    deleted: bool = False
    change: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a transaction counts; `refusal` says why not."""

    transaction: Transaction
    refusal: str | None


@dataclass(slots=True, eq=False)
class GroupState:
    """The validated content of a group or an account.

    Attributes:
        co_id: The group's id.
        agent_id: For an account, its agent (the initial admin); None for a group.
        entries: For each key its valid assignments in the order of time.
        verdicts: The judgement of each transaction in the order of time.
        parents: For each parent group its mappings over time, `revoked` included.
        missing: Ids of parents that are named with authority but are not loaded.
        cursor: While the pass is under way, the time that it has reached; None once it is finished.
    """

    co_id: str
    agent_id: str | None
    find_parent: Callable[[str], "GroupState | str"]
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    parents: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    cursor: int | None = None
    latest: int = 0
    _epochs: list[int] | None = None
    _roles: dict[tuple[str, int], str | None] = field(default_factory=dict)

    def entry(self, key: str, at: int | None = None) -> Entry | None:
        """The assignment of a key in force at a time (ms; None: now)."""
        entries = self.entries.get(key)
        if not entries:
            return None
        if at is None:
            return entries[-1]
        place = bisect_right(entries, at, key=lambda entry: entry.made_at)
        return entries[place - 1] if place else None

    def get(self, key: str, at: int | None = None) -> Json:
        """The value of a key at a time; None without one."""
        entry = self.entry(key, at)
        return None if entry is None else entry.value

    def role_of(self, member: str, at: int | None = None) -> str | None:
        """The effective role of an account, an agent or `everyone` at a time, through parents and `everyone`."""
        if self.cursor is not None:
            return self._find_role(member, at, 0)
        epochs = self.epochs()
        place = len(epochs) if at is None else bisect_right(epochs, at)
        found = self._roles.get((member, place), "")
        if found == "":
            found = self._find_role(member, at, 0)
            self._roles[member, place] = found
        return found

    def epochs(self) -> list[int]:
        """The times at which any role may have changed, here or in a parent: between two of them roles are constant."""
        if self._epochs is None:
            times = {entry.made_at for entries in self.entries.values() for entry in entries}
            for parent in self._parent_states():
                times.update(parent.epochs())
            self._epochs = sorted(times)
        return self._epochs

    def parent_ids(self) -> list[str]:
        """Ids of the parent groups in force now."""
        return [parent for parent, mappings in self.parents.items() if mappings[-1][1] != "revoked"]

    def extends(self, group: str) -> bool:
        """Whether this group is, or inherits from, another."""
        seen: set[str] = set()
        queue: list[GroupState] = [self]
        while queue:
            state = queue.pop()
            if state.co_id == group:
                return True
            seen.add(state.co_id)
            found = (state.find_parent(parent) for parent in state.parent_ids() if parent not in seen)
            queue.extend(parent for parent in found if isinstance(parent, GroupState))
        return False

    def member_keys(self) -> list[str]:
        """Ids of all accounts and agents that were ever given a role here."""
        return [key for key in self.entries if is_member_key(key)]

    def _parent_states(self) -> Iterable["GroupState"]:
        for parent in self.parents:
            state = self.find_parent(parent)
            if isinstance(state, GroupState):
                yield state

    def _find_role(self, member: str, at: int | None, depth: int) -> str | None:
        if self.agent_id is not None and member == self.co_id:
            member = self.agent_id
        direct = self.get(member, at)
        role = direct if isinstance(direct, str) and direct != "revoked" else None
        if depth < _MAX_DEPTH:
            for parent in self.parents:
                inherited = self._inherited(parent, member, at, depth)
                if inherited is not None and _inherits_over(inherited, role):
                    role = inherited
        if role is None and member != EVERYONE:
            public = self.get(EVERYONE, at)
            role = public if isinstance(public, str) and public != "revoked" else None
        return role

    def _inherited(self, parent_id: str, member: str, at: int | None, depth: int) -> str | None:
        mapping = _at(self.parents[parent_id], at)
        if mapping not in _MAPPINGS:
            return None
        parent = self.find_parent(parent_id)
        if not isinstance(parent, GroupState):
            return None
        role = parent._find_role(member, at, depth + 1)  # noqa: SLF001 - the same class, one level up
        if role not in _INHERITABLE:
            return None
        return role if mapping == "extend" else mapping


def judge_group(state: GroupState, transactions: Iterable[Transaction], initial_admin: str) -> None:
    """Judges all transactions of a group or an account.

    Args:
        state: Empty; it is filled. Its `find_parent` gives a parent's state, or the reason why it has none (`missing`
            if it is not loaded). Where two groups extend each other, it may give a state that is still being filled:
            the older of the two extensions counts then.
        transactions: All of the group, each session's in its own order.
        initial_admin: The account or agent that may make itself admin.
    """
    judge = _GroupJudge(state, initial_admin)
    for transaction in sorted(transactions, key=_when):
        state.cursor = transaction.made_at
        refusal = judge.refusal(transaction)
        state.verdicts.append(Verdict(transaction, refusal))
        if refusal is None:
            state.latest = transaction.made_at
    state.cursor = None


def refusal_of_write(owner: GroupState, transaction: Transaction) -> str | None:
    """Why a transaction of a value does not count under its owning group; None if it does."""
    role = owner.role_of(transaction.author, transaction.made_at)
    if role in WRITERS:
        return None
    return f"its author's role at that time is {role or 'none'}"


def is_member_key(key: str) -> bool:
    """Whether a group's key names an account or an agent."""
    return key.startswith(("co_", "sealer_"))


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


class _GroupJudge:
    """The pass over a group's transactions: roles as far as it came."""

    def __init__(self, state: GroupState, initial_admin: str) -> None:
        self._state = state
        self._initial_admin = initial_admin
        self._direct: dict[str, str] = {}
        self._parents: dict[str, str] = {}
        self._write_keys: dict[str, Json] = {}
        self._set_write_keys: set[str] = set()

    def refusal(self, transaction: Transaction) -> str | None:
        """Judges the next transaction and takes it into the state if it is valid."""
        role = self._role_at(transaction.author, transaction.made_at)
        if transaction.is_private:
            if self._state.agent_id is None:
                return "private transactions don't count in groups"
            return None if role == "admin" else "only an admin may write privately to an account"
        changes = decode_trusting(transaction)
        if changes is None or len(changes) != 1:
            return "a group's transaction must have exactly one change"
        change = changes[0]
        if not isinstance(change, dict) or change.get("op") != "set" or not isinstance(change.get("key"), str):
            return "a group's transaction must set a key"
        key, value = change["key"], change.get("value")
        refusal = self._refusal_of_set(transaction, role, key, value)
        if refusal is None:
            entries = self._state.entries.setdefault(key, [])
            entries.append(Entry(transaction.made_at, value, transaction))
        return refusal

    def _refusal_of_set(self, transaction: Transaction, role: str | None, key: str, value: Json) -> str | None:
        if key in ("readKey", "groupSealer", "profile", "root"):
            return None if role in ADMINS else f"only admins and managers set {key}"
        if _is_key_reveal(key):
            own = self._write_keys.get(transaction.author) == _revealed_key(key)
            return None if role in ADMINS or role in INVITES or own else "only admins and managers reveal keys"
        if key.startswith("parent_"):
            return self._refusal_of_parent(transaction, role, key.removeprefix("parent_"), value)
        if key.startswith("child_"):
            return "child extensions are obsolete"
        if key.startswith("writeKeyFor_"):
            return self._refusal_of_write_key(transaction, role, key, value)
        refusal = self._refusal_of_role(transaction, role, key, value)
        if refusal is None:
            self._direct[key] = value
        return refusal

    def _refusal_of_parent(self, transaction: Transaction, role: str | None, parent_id: str, value: Json) -> str | None:
        if role not in ADMINS:
            return "only admins and managers extend a group"
        parent = self._state.find_parent(parent_id) if is_co_id(parent_id) else "not a group"
        if isinstance(parent, str):
            if parent == "missing":
                self._state.missing.add(parent_id)
            return f"the parent group is {parent}"
        if parent.cursor is not None and transaction.made_at >= parent.cursor:
            return "the parent group extends this group"
        if parent.extends(self._state.co_id):
            return "the parent group extends this group"
        mapping = value if isinstance(value, str) else "revoked"
        if mapping == "revoked":
            self._parents.pop(parent_id, None)
        else:
            self._parents[parent_id] = mapping
        self._state.parents.setdefault(parent_id, []).append((transaction.made_at, mapping))
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

    def _refusal_of_role(  # noqa: PLR0911 - one return a rule of the protocol
        self, transaction: Transaction, role: str | None, member: str, assigned: Json
    ) -> str | None:
        author = transaction.author
        if not isinstance(assigned, str) or assigned not in _ASSIGNABLE:
            return "not a role"
        if member == EVERYONE and assigned not in _EVERYONE_ROLES:
            return f"everyone can't be {assigned}"
        if role is None and author == self._initial_admin and member == author and assigned == "admin":
            return None
        if member == author and assigned == "revoked":
            return None
        affected = self._role_at(member, transaction.made_at)
        if role == "admin":
            demotes = affected == "admin" and assigned != "admin" and member != author
            return "admins can't demote admins" if demotes else None
        if role == "manager":
            forbidden = affected == "admin" or assigned in ("admin", "adminInvite", "managerInvite")
            return "managers can't change or make admins" if forbidden else None
        if role in INVITES and assigned == role.removesuffix("Invite"):
            return None
        return f"a role is given by admins, managers and invites, not by {role or 'a stranger'}"

    def _role_at(self, member: str, at: int) -> str | None:
        role = self._direct.get(member)
        for parent_id, mapping in self._parents.items():
            parent = self._state.find_parent(parent_id)
            if mapping not in _MAPPINGS or not isinstance(parent, GroupState):
                continue
            inherited = parent.role_of(member, at)
            if inherited in _INHERITABLE and inherited is not None:
                resolved = inherited if mapping == "extend" else mapping
                if _is_higher(resolved, role):
                    role = resolved
        return role


def _is_higher(role: str, than: str | None) -> bool:
    if than is None or than == "revoked":
        return True
    if than == "admin":
        return False
    if role == "admin":
        return True
    if than == "manager":
        return False
    return role == "manager" or (role == "writer" and than == "reader")


def _inherits_over(inherited: str, role: str | None) -> bool:
    if inherited == "admin":
        return role != "admin"
    if inherited == "manager":
        return role not in ADMINS
    if inherited == "writer":
        return role in (None, "reader", "writeOnly")
    return role is None


def _is_key_reveal(key: str) -> bool:
    if "_for_everyone" in key:
        return True
    if not key.startswith("key_"):
        return False
    return any(part in key for part in ("_for_key", "_for_sealer", "_for_co", "_sealedFor_sealer"))


def _revealed_key(key: str) -> str:
    for separator in ("_for_", "_sealedFor_"):
        place = key.find(separator)
        if place > 0:
            return key[:place]
    return ""


def _when(transaction: Transaction) -> tuple[int, str]:
    return transaction.when


def _at(mappings: Sequence[tuple[int, str]], at: int | None) -> str | None:
    if at is None:
        return mappings[-1][1] if mappings else None
    place = bisect_right(mappings, at, key=lambda mapping: mapping[0])
    return mappings[place - 1][1] if place else None
