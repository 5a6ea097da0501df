"""The validated content of a group: every member's role at any time, also through parent groups.

The rules are those of docs/jazz-protocol.md, section 5.

Invariants:
    Entries of a key stand in the order of time, and only valid ones are taken. Roles through a parent are looked up in
    the parent's own validated state, at the same time. Where groups extend each other in a circle (a back-dated
    extension can do that), the way back gives nothing; no chain of groups, however long, needs recursion.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from reside.jazz.ids import EVERYONE, Json
from reside.jazz.wire.session import Transaction

WRITERS: Final = frozenset({"admin", "manager", "writer", "writeOnly"})
READERS: Final = frozenset({"admin", "manager", "writer", "reader"})
ADMINS: Final = frozenset({"admin", "manager"})
INVITES: Final = frozenset({"adminInvite", "managerInvite", "writerInvite", "readerInvite", "writeOnlyInvite"})
WRITE_ONLY: Final = frozenset({"writeOnly", "writeOnlyInvite"})
KEY_HOLDERS: Final = READERS | (INVITES - WRITE_ONLY)
"""Who gets read keys. The JavaScript library forgets managerInvite when it changes a key, so that such an invite can't
be accepted afterwards; whoever changes keys here gives them to it too."""
INHERITABLE: Final = READERS
MAPPINGS: Final = READERS | {"extend"}
_BEGINNING: Final = -1
NEVER: Final = 2**63
"""A time that never comes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One valid assignment of a key.

    Attributes:
        made_at: Its author's clock, ms since the epoch.
        value: What was assigned.
        transaction: Where.
        trusted: Of a reveal: its author may give out any key of the group, not only the own write key.
    """

    made_at: int
    value: Json
    transaction: Transaction
    trusted: bool = True


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
        find_parent: Gives a parent's state, or the reason why it has none (`missing` if it is not loaded).
        entries: For each key its valid assignments in the order of time.
        verdicts: The judgement of each transaction in the order of time.
        parents: For each parent group its mappings over time, `revoked` included.
        missing: Ids of parents that are named with authority but are not loaded.
        encrypted_under: For each key id the ids of the keys that it was encrypted under.
        read_keys: Every key id that was the read key once.
        cursor: While the pass is under way, the time that it has reached; None once it is finished.
        latest: Time of the last valid transaction.
    """

    co_id: str
    agent_id: str | None
    find_parent: Callable[[str], "GroupState | str"]
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    parents: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    encrypted_under: dict[str, dict[str, None]] = field(default_factory=dict)
    read_keys: set[str] = field(default_factory=set)
    cursor: int | None = None
    latest: int = 0
    _own_epochs: list[int] = field(default_factory=list)
    _epochs: list[int] | None = None
    _roles: dict[int, dict[str, str | None]] = field(default_factory=dict)

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

    def reveal(self, name: str, key_id: str) -> Entry | None:
        """The reveal of a key to believe: the last by somebody who may give out any key of the group.

        Anybody may name a key its own write key and reveal it (the protocol wants that where everyone may write). So
        such reveals are believed of keys that were never the group's read key only: otherwise a stranger could give
        members a secret of its own to encrypt with. The JavaScript library believes the last one whoever made it.
        """
        entries = self.entries.get(name, ())
        for entry in reversed(entries):
            if entry.trusted:
                return entry
        return entries[-1] if entries and key_id not in self.read_keys else None

    def role_of(self, member: str, at: int | None = None) -> str | None:
        """The effective role of an account, an agent or `everyone` at a time, through parents and `everyone`."""
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

    def writes_during(self, member: str, at: int) -> tuple[int, int]:
        """From when until when (ms) a member who may write at a time surely may; the same time twice if it may not."""
        if self.role_of(member, at) not in WRITERS:
            return at, at
        epochs = self.epochs()
        place = bisect_right(epochs, at)
        return epochs[place - 1] if place else at, epochs[place] if place < len(epochs) else NEVER

    def epochs(self) -> list[int]:
        """The times at which any role may have changed, here or in a parent: between two of them roles are constant."""
        if not self.parents:
            return self._own_epochs
        if self._epochs is None:
            times = {time for state in self.lineage() for time in state._own_epochs}
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

    def valid(self) -> list[Transaction]:
        """The transactions that count, in the order of time."""
        return [verdict.transaction for verdict in self.verdicts if verdict.refusal is None]

    def take(self, key: str, entry: Entry) -> int:
        """Takes in the next valid assignment, which is not older than any before.

        Returns:
            The time from which on roles may differ; a parent may change them at any time.
        """
        self.entries.setdefault(key, []).append(entry)
        if key.startswith("key_"):
            self._take_reveal(key)
        elif key == "readKey":
            if isinstance(entry.value, str):
                self.read_keys.add(entry.value)
        elif key == EVERYONE or is_member_key(key) or key.startswith("parent_"):
            if not self._own_epochs or self._own_epochs[-1] < entry.made_at:
                self._own_epochs.append(entry.made_at)
            return 0 if key.startswith("parent_") else entry.made_at
        return NEVER

    def forget_roles(self, since: int) -> None:
        """Drops what was found out about roles from a time on: something changed there, here or in a parent."""
        self._epochs = None
        for start in [start for start in self._roles if start >= since]:
            del self._roles[start]

    def _take_reveal(self, key: str) -> None:
        parts = key.split("_for_")
        if len(parts) == 2 and parts[1].startswith("key"):  # noqa: PLR2004 - a key and what it is encrypted under
            self.encrypted_under.setdefault(parts[0], {})[parts[1]] = None

    def lineage(self) -> Iterator["GroupState"]:
        """This group and all that it ever extended, over any number of groups."""
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
        """Depth first over the parents, each group once: a group's role is known when those of its parents are."""
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
    """Whether a group's key names an account or an agent."""
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
