"""All values of a node, the validated states of its groups, and their dependencies.

Invariants:
    A change of a group's log drops the state of that group and of every group that extends it, and marks every value
    that one of them owns as stale, with its branches. So content never outlives the permissions that validated it.
"""

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Protocol

from reside.jazz.errors import InvalidState
from reside.jazz.ids import CoId, is_account_id
from reside.jazz.memory.covalue import Core, own
from reside.jazz.memory.decoded import DecodedContents
from reside.jazz.memory.group_states import GroupStates
from reside.jazz.rules.deletion import refusal_of_deletion
from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.reader import Reader
from reside.jazz.wire.crypto import Agent
from reside.jazz.wire.header import Header
from reside.jazz.wire.session import Transaction


def no_account() -> InvalidState:
    """Return the error about an account that is neither registered nor logged in."""
    return InvalidState("no account yet: await node.register(name) or node.login() first")


class Guard(Protocol):
    """Refuses transactions in addition to those that roles forbid; implemented by `reside.jazz.removals.WriteGuard`."""

    def was_complete(self, core: Core) -> bool:
        """Return whether a value was loaded completely before, so that what arrives now is new."""

    def arriving(self, core: Core, transactions: Sequence[Transaction], *, new: bool) -> None:
        """Refuse transactions before they are added to a value's log."""

    def arrived(self, core: Core) -> None:
        """Note that a message about a value was processed."""

    def created(self, core: Core) -> None:
        """Note that this node created a value."""

    def changed(self, core: Core) -> None:
        """Note that a value, or the permissions for it, changed."""

    def evicted(self, core: Core) -> None:
        """Note that a value is evicted."""


class Store:
    """The values of one node.

    Args:
        agent: the key pairs of the node's account.
        account_id: the node's account.
        on_change: called with each value whose log, availability or permissions changed.

    Attributes:
        guard: refuses transactions by a policy; None if there is no policy.
        restore: fills an empty value from the local store; None if there is no local store.
        skipping: the changed values with skipped sessions; see `reside.jazz.sync.skipping`.
        decoded: the values with decoded content that can be dropped.
    """

    def __init__(self, agent: Agent, account_id: str, on_change: Callable[[Core], None]) -> None:
        self.agent = agent
        self.account_id = account_id
        self.reader = Reader(account_id, agent)
        self.cores: dict[CoId, Core] = {}
        self.restore: Callable[[Core], None] | None = None
        self._on_change = on_change
        self._group_states = GroupStates(self)
        self.guard: Guard | None = None
        self.skipping: dict[CoId, Core] = {}
        self.decoded = DecodedContents()

    def core(self, co_id: str) -> Core:
        """Return the value of an id; if it is not in memory, restore it from the local store or create an empty one."""
        core = self.cores.get(CoId(co_id))
        if core is None:
            core = self.cores[CoId(co_id)] = Core(CoId(co_id))
            if self.restore is not None:
                self.restore(core)
        return core

    def find(self, co_id: str) -> Core | None:
        """Return the value of an id if it is in memory or in the local store."""
        core = self.cores.get(CoId(co_id))
        if core is None and self.restore is not None:
            core = self.core(co_id)
            if core.header is None:
                del self.cores[core.co_id]
                return None
        return core

    def set_header(self, core: Core, header: Header) -> None:
        """Set a value's header; the caller then calls `changed` or `arrived`."""
        core.header = header
        core.absent = False
        for needed in header.needs():
            self.link(needed, core.co_id)

    def drop(self, evicted: Iterable[Core]) -> None:
        """Remove evicted values; see `reside.jazz.memory.eviction`."""
        for core in evicted:
            del self.cores[core.co_id]
            self.decoded.forget(core.co_id)
            if self.guard is not None:
                self.guard.evicted(core)
        # Check all links: a group may still be linked to a former parent.
        for core in self.cores.values():
            if core.dependants:
                core.dependants = {dependant for dependant in core.dependants if dependant in self.cores}

    def link(self, needed: str, dependant: CoId) -> None:
        """Note that a value's content depends on a group, or a branch's on its source."""
        self.core(needed).add_dependant(dependant)

    def changed(self, core: Core) -> None:
        """Drop everything that was derived from a value, and notify about the change."""
        seen: set[CoId] = set()
        queue = [core]
        deletions: list[Core] = []
        while queue:
            current = queue.pop()
            if current.co_id in seen:
                continue
            seen.add(current.co_id)
            if current.deletions:
                deletions.append(current)
            current.stale = True
            if current.skipped is not None:
                self.skipping[current.co_id] = current
            current.group_state = None
            self._on_change(current)
            if self.guard is not None:
                self.guard.changed(current)
            if current.header is not None:
                queue.extend(self.cores[dependant] for dependant in current.dependants)
        for marked in deletions:
            self._validate_deletions(marked)

    def arrived(self, core: Core) -> None:
        """Note that a message about a value was processed."""
        self.changed(core)
        if self.guard is not None:
            self.guard.arrived(core)

    def _validate_deletions(self, core: Core) -> None:
        header = core.header
        if header is None:
            return
        owner = self.owner_of(header)
        core.deleted = any(refusal_of_deletion(item, header, owner) is None for item in core.deletions)

    def owner_of(self, header: Header) -> GroupState | None:
        """Return the state of the group that owns a value with this header; None if there is none, or not loaded."""
        owner = None if header.owner is None else self.group_state(header.owner)
        return owner if isinstance(owner, GroupState) else None

    def agent_of(self, member: str) -> str | None:
        """Return the agent id of an account or agent; None if the account is not loaded."""
        if not is_account_id(member):
            return member
        core = self.cores.get(CoId(member))
        if core is None or core.header is None or not core.header.is_account:
            return None
        return core.header.initial_admin

    def check_account(self) -> None:
        """Check that the node's account is here: without it, nobody could verify what it writes.

        Raises:
            InvalidState: it was neither registered nor logged in.
        """
        own = self.find(self.account_id)
        if own is None or own.header is None:
            raise no_account()

    def secrets_of(self, group_id: str) -> MutableMapping[str, str]:
        """Return the secrets of a group's keys that this account has found; they are cached with the group."""
        core = self.core(group_id)
        core.secrets = secrets = own(core.secrets)
        return secrets

    def group_state(self, co_id: str) -> GroupState | str:
        """Return the validated state of a group or account, or why there is none (`missing`: it is not loaded)."""
        core = self.cores.get(CoId(co_id))
        return "missing" if core is None else self._group_states.state(core)
