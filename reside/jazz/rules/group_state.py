"""The validated content of a group: every member's role at any time, also through parent groups.

The rules are those of docs/jazz-protocol.md, section 5.

Invariants:
    The entries of a key are valid and ordered by time. A role through a parent is looked up in the parent's own
    validated state, at the same time. If groups extend each other in a cycle (a back-dated extension can do that), the
    cycle adds no roles. Chains of groups are followed without recursion, so their length is not limited.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from reside.jazz.ids import EVERYONE, Json
from reside.jazz.wire.session import Transaction

WRITERS: Final = frozenset({"admin", "manager", "writer", "writeOnly"})
READERS: Final = frozenset({"admin", "manager", "writer", "reader"})
ADMINS: Final = frozenset({"admin", "manager"})
INVITES: Final = frozenset({"adminInvite", "managerInvite", "writerInvite", "readerInvite", "writeOnlyInvite"})
WRITE_ONLY: Final = frozenset({"writeOnly", "writeOnlyInvite"})
KEY_HOLDERS: Final = READERS | (INVITES - WRITE_ONLY)
"""The roles that get read keys. The JavaScript library omits managerInvite when it rotates a key, so such an invite
can't be accepted afterwards."""
INHERITABLE: Final = READERS
MAPPINGS: Final = READERS | {"extend"}
_BEGINNING: Final = -1
NEVER: Final = 2**65
"""A time after every transaction."""


class Entry(NamedTuple):
    """One valid assignment of a key.

    Attributes:
        made_at: its author's clock, ms since the epoch.
        value: the assigned value.
        transaction: the transaction that assigned it.
        trusted: for a reveal, whether its author may reveal any key of the group and not only its own write key.
    """

    made_at: int
    value: Json
    transaction: Transaction
    trusted: bool = True


class Verdict(NamedTuple):
    """Whether a transaction is valid: `refusal` is None, or the reason why it is invalid."""

    transaction: Transaction
    refusal: str | None


@dataclass(slots=True, eq=False)
class GroupState:
    """The validated content of a group or an account.

    Attributes:
        co_id: the group's id.
        agent_id: for an account, its agent (the initial admin); None for a group.
        find_parent: returns a parent's state, or the reason why it has none (`missing`: it is not loaded).
        entries: for each key, its valid assignments in the order of time.
        verdicts: the verdict on each transaction. Those that may count are in the order of time.
        parents: for each parent group, its mappings over time, including `revoked`.
        missing: ids of parents that an admin or manager set but that are not loaded.
        encrypted_under: for each key id, the ids of the keys that it was encrypted under.
        read_keys: ids of all current and former read keys.
        cursor: the time that a running validation pass has reached; None if none is running.
        latest: time of the last valid transaction by an admin or manager; nobody else can move a writer's clock.
    """

    co_id: str
    agent_id: str | None
    find_parent: Callable[[str], "GroupState | str"]
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    parents: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    missing: AbstractSet[str] = frozenset()
    encrypted_under: dict[str, dict[str, None]] = field(default_factory=dict)
    read_keys: set[str] = field(default_factory=set)
    cursor: int | None = None
    latest: int = 0
    _own_epochs: list[int] = field(default_factory=list)
    _epochs: list[int] | None = None
    _roles: dict[int, dict[str, str | None]] = field(default_factory=dict)
    _role_since: dict[str, int] = field(default_factory=dict)

    def entry(self, key: str, at: int | None = None) -> Entry | None:
        """Return the assignment of a key that is effective at a time (in ms; None for now)."""
        entries = self.entries.get(key)
        if not entries:
            return None
        if at is None:
            return entries[-1]
        place = bisect_right(entries, at, key=lambda entry: entry.made_at)
        return entries[place - 1] if place else None

    def get(self, key: str, at: int | None = None) -> Json:
        """Return the value of a key at a time; None if it has none."""
        entry = self.entry(key, at)
        return None if entry is None else entry.value

    def reveal(self, name: str, key_id: str) -> Entry | None:
        """Return the reveal of a key to use: the last one by an author that may reveal any key of the group.

        Any account may declare a key as its own write key and reveal it; the protocol needs this where everyone may
        write. Such reveals are used only for keys that were never the group's read key. Otherwise a non-member could
        make members encrypt with a secret that the non-member knows. In JavaScript, the last reveal of any author is
        used.
        """
        entries = self.entries.get(name, ())
        for entry in reversed(entries):
            if entry.trusted:
                return entry
        return entries[-1] if entries and key_id not in self.read_keys else None

    def role_of(self, member: str, at: int | None = None) -> str | None:
        """Return the effective role of a member at a time (ms), including roles through parents and `everyone`."""
        if self.cursor is not None:
            return self._find_role(member, at)
        epochs = self.epochs()
        place = len(epochs) if at is None else bisect_right(epochs, at)
        since = epochs[place - 1] if place else _BEGINNING
        roles = self._roles.get(since)
        if roles is not None and member in roles:
            return roles[member]
        role = self._find_role(member, at)
        if member == EVERYONE or is_member_key(member):
            self._roles.setdefault(since, {})[member] = role
        return role

    def roles_within(self, member: str, at: int) -> set[str | None]:
        """Return the roles with which a member may have changed the group in one millisecond.

        Besides the role at its end, these are the role at its beginning and the direct roles that were given and taken
        away in it, because `reside.jazz.rules.ties` settles changes before what takes away the role that they need.
        """
        roles = {self.role_of(member, at - 1), self.role_of(member, at)}
        for state in self.lineage():
            entries = state.entries.get(member, ())
            first = bisect_left(entries, at, key=lambda entry: entry.made_at)
            last = bisect_right(entries, at, key=lambda entry: entry.made_at) - 1
            roles.update(entry.value for entry in entries[first:last] if isinstance(entry.value, str))
        return roles

    def writes_during(self, member: str, at: int) -> tuple[int, int]:
        """Return an interval around a time (ms) in which a member may write; empty if it may not at that time."""
        if self.role_of(member, at) not in WRITERS:
            return at, at
        epochs = self.epochs()
        place = bisect_right(epochs, at)
        return epochs[place - 1] if place else at, epochs[place] if place < len(epochs) else NEVER

    def role_since(self, member: str) -> int:
        """Return the time in ms since which a member has had its current role; 0 if it always had."""
        since = self._role_since.get(member)
        if since is None:
            role = self.role_of(member)
            epochs = reversed(self.epochs())
            since = next((epoch for epoch in epochs if self.role_of(member, epoch - 1) != role), 0)
            self._role_since[member] = since
        return since

    def knows(self, author: str) -> bool:
        """Return whether an author ever had a direct role here or in a parent; the roles of `everyone` don't count."""
        if self.agent_id is not None and author in (self.co_id, self.agent_id):
            return True
        return any(author in state.entries for state in self.lineage())

    def public_roles(self) -> frozenset[str]:
        """Return the roles that `everyone` ever had here or in a parent."""
        entries = (entry.value for state in self.lineage() for entry in state.entries.get(EVERYONE, ()))
        return frozenset(value for value in entries if isinstance(value, str) and value != "revoked")

    def epochs(self) -> list[int]:
        """Return all times at which roles may change, here or in a parent. Between two of them they are constant."""
        if not self.parents:
            return self._own_epochs
        if self._epochs is None:
            times = {time for state in self.lineage() for time in state._own_epochs}
            self._epochs = sorted(times)
        return self._epochs

    def parent_ids(self) -> list[str]:
        """Return the ids of the current parent groups."""
        return [parent for parent, mappings in self.parents.items() if mappings[-1][1] != "revoked"]

    def extends(self, group: str) -> bool:
        """Return whether this group is the group of this id, or inherits from it."""
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
        """Return the ids of all accounts and agents that ever had a role in this group."""
        return [key for key in self.entries if is_member_key(key)]

    def valid(self) -> list[Transaction]:
        """Return the valid transactions in the order of time."""
        return [verdict.transaction for verdict in self.verdicts if verdict.refusal is None]

    def add(self, key: str, entry: Entry) -> int:
        """Add a valid assignment that is not older than any added before.

        Returns:
            the time in ms from which roles may differ; 0 for an extension, because a parent's roles may have any time;
            `NEVER` if roles stay the same.
        """
        entries = self.entries.setdefault(key, [])
        # Anyone may revoke themselves, which changes nothing for those without a role.
        changes_role = entry.value != "revoked" or (entries and entries[-1].value != "revoked")
        entries.append(entry)
        if key.startswith("key_"):
            self._add_reveal(key)
        elif key == "readKey":
            if isinstance(entry.value, str):
                self.read_keys.add(entry.value)
        elif key.startswith("parent_") or (changes_role and (key == EVERYONE or is_member_key(key))):
            if not self._own_epochs or self._own_epochs[-1] < entry.made_at:
                self._own_epochs.append(entry.made_at)
            return 0 if key.startswith("parent_") else entry.made_at
        return NEVER

    def add_missing(self, parent: str) -> None:
        """Note a parent that is not loaded."""
        if not isinstance(self.missing, set):  # nearly no group has one
            self.missing = set()
        self.missing.add(parent)

    def forget_roles(self, since: int) -> None:
        """Drop cached roles from a time on, because this group or a parent changed there."""
        self._epochs = None
        if since < NEVER:
            self._role_since.clear()
        for start in [start for start in self._roles if start >= since]:
            del self._roles[start]

    def _add_reveal(self, key: str) -> None:
        parts = key.split("_for_")
        if len(parts) == 2 and parts[1].startswith("key"):  # noqa: PLR2004 - a key and what it is encrypted under
            self.encrypted_under.setdefault(parts[0], {})[parts[1]] = None

    def lineage(self) -> Iterator["GroupState"]:
        """Yield this group and all groups that it ever extended, directly or through others."""
        seen = {self.co_id}
        queue: list[GroupState] = [self]
        while queue:
            state = queue.pop()
            yield state
            for parent_id in state.parents:
                parent = state.find_parent(parent_id) if parent_id not in seen else "seen"
                if isinstance(parent, GroupState):
                    seen.add(parent_id)
                    queue.append(parent)

    def _find_role(self, member: str, at: int | None) -> str | None:
        """Find a role depth-first over the parents, each group once: it depends on the roles in the parents."""
        found: dict[str, str | None] = {}
        opened: set[str] = set()
        stack = [self]
        while stack:
            state = stack[-1]
            above = list(state._parents_at(at))
            if state.co_id not in opened:
                opened.add(state.co_id)
                waiting = [parent for parent, _ in above if parent.co_id not in opened]
                if waiting:
                    stack.extend(waiting)
                    continue
            stack.pop()
            if state.co_id not in found:
                inherited = ((found.get(parent.co_id), mapping) for parent, mapping in above)
                found[state.co_id] = state._role_with(member, at, inherited)
        return found[self.co_id]

    def _parents_at(self, at: int | None) -> Iterator[tuple["GroupState", str]]:
        for parent_id, mappings in self.parents.items():
            mapping = _at(mappings, at)
            parent = self.find_parent(parent_id) if mapping in MAPPINGS else None
            if isinstance(parent, GroupState) and mapping is not None:
                yield parent, mapping

    def _role_with(self, member: str, at: int | None, inherited: Iterator[tuple[str | None, str]]) -> str | None:
        if self.agent_id is not None and member == self.co_id:
            member = self.agent_id
        direct = self.get(member, at)
        role = direct if isinstance(direct, str) and direct != "revoked" else None
        for parent_role, mapping in inherited:
            if parent_role not in INHERITABLE or parent_role is None:
                continue
            offered = parent_role if mapping == "extend" else mapping
            if _inherits_over(offered, role):
                role = offered
        if role is None and member != EVERYONE:
            public = self.get(EVERYONE, at)
            role = public if isinstance(public, str) and public != "revoked" else None
        return role


def is_member_key(key: str) -> bool:
    """Return whether a group's key names an account or an agent."""
    return key.startswith(("co_", "sealer_"))


def _inherits_over(inherited: str, role: str | None) -> bool:
    if inherited == "admin":
        return role != "admin"
    if inherited == "manager":
        return role not in ADMINS
    if inherited == "writer":
        return role in (None, "reader", "writeOnly")
    return role is None


def _at(mappings: Sequence[tuple[int, str]], at: int | None) -> str | None:
    if at is None:
        return mappings[-1][1] if mappings else None
    place = bisect_right(mappings, at, key=lambda mapping: mapping[0])
    return mappings[place - 1][1] if place else None
