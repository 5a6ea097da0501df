"""Refusal of writes by the time of their arrival, because a signature does not prove `madeAt`.

A transaction's time is its author's claim (docs/jazz-protocol.md, section 5). So a removed member can back-date a
write, and a clock that runs ahead wins over all others. A `WritePolicy` makes a node refuse, in addition to what the
roles forbid,

* what it first sees after its author lost the right to write it, regardless of its date. What it saw before stays
  valid; what arrives together with the removal, or in the first load of a value, counts as seen before. A member that
  wrote before its removal but was offline loses that write on this node.
* what is dated further ahead of the node's clock than a limit when it arrives.

Such a transaction is refused as long as the node lives. This is the decision of one node: another node without this
policy, or one that received things in another order, has other content. `RemovalRecord` keeps the first rule across
restarts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from reside.jazz.ids import CoId, is_delete_session
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.removals.seen import EvictedValues, Governed
from reside.jazz.rules.group_state import INVITES, WRITERS, GroupState
from reside.jazz.wire.session import Transaction

AFTER_REMOVAL: Final = "it was first seen here after its author lost the right to write it"


@dataclass(frozen=True)
class WritePolicy:
    """What a node refuses in addition to what the roles forbid.

    Attributes:
        refuse_after_removal: whether to refuse transactions that are first seen after their author's removal.
        max_ahead_ms: the limit in ms by which transactions may be ahead of the node's clock; None for no limit.
        remember: whether to keep removals across restarts, in a private map of the node's account.
    """

    refuse_after_removal: bool = False
    max_ahead_ms: int | None = None
    remember: bool = False

    def __post_init__(self) -> None:
        if self.remember and not self.refuse_after_removal:
            raise ValueError(
                "a WritePolicy with remember=True needs refuse_after_removal=True: removals are what it remembers"
            )


class Removals(Protocol):
    """The record of removals across restarts; implemented by `RemovalRecord`."""

    def mark(self, value: Governed) -> None:
        """Schedule a check of a value, which may be evicted."""

    def note(self, value: Governed) -> None:
        """Record accounts that lost the right to write a value."""

    def apply(self, core: Core) -> None:
        """Refuse transactions of a first load whose author was removed before."""

    def flush(self) -> None:
        """Check the marked values now."""

    def close(self) -> None:
        """Record nothing more: the node has ended."""

    def forget(self, co_id: CoId) -> None:
        """Forget what is cached for a value that is evicted."""


class WriteGuard:
    """Applies a policy to arriving transactions.

    Args:
        store: the values.
        policy: what to refuse.
        clock: returns ms since the epoch.
    """

    def __init__(self, store: Store, policy: WritePolicy, clock: Callable[[], int]) -> None:
        self._store = store
        self.policy = policy
        self._clock = clock
        self._removals: Removals | None = None
        self._completed: set[CoId] = set()
        self._evicted = EvictedValues()

    def was_complete(self, core: Core) -> bool:
        """Return whether a value was loaded completely before, so that what arrives now is new."""
        return core.co_id in self._completed

    def arriving(self, core: Core, transactions: Sequence[Transaction], *, new: bool) -> None:
        """Refuse transactions before they are added to a value's log.

        Args:
            core: the value.
            transactions: verified transactions of one session.
            new: whether the value had been loaded completely before they arrived.
        """
        transactions = self._evicted.new_of(core, transactions)
        limit = self.policy.max_ahead_ms
        if limit is not None:
            latest = self._clock() + limit
            for item in transactions:
                if item.made_at > latest:
                    item.policy_refusal = f"it is dated {item.made_at - latest + limit} ms ahead of this node's clock"
        if new and self.policy.refuse_after_removal:
            if self._removals is not None:
                self._removals.note(self._evicted.get(core.co_id) or core)
            for item in transactions:
                if item.policy_refusal is None and self._is_after_removal(core, item):
                    item.policy_refusal = AFTER_REMOVAL

    def arrived(self, core: Core) -> None:
        """Check after a message about a value whether the value is now complete for the first time."""
        if core.co_id not in self._completed and core.is_complete():
            self._completed.add(core.co_id)
            if self._removals is not None:
                self._removals.apply(core)

    def created(self, core: Core) -> None:
        """Note that this node created a value, so that everything that others write to it is new."""
        self._completed.add(core.co_id)

    def changed(self, core: Core) -> None:
        """Note that a value, or the permissions for it, changed."""
        self._evicted.arrived(core)
        if self._removals is None:
            return
        if core.co_id in self._completed and core.co_id not in self._evicted:
            self._removals.mark(core)
        for evicted in self._evicted.governed_by(core.co_id):
            self._removals.mark(evicted)

    def evicted(self, core: Core) -> None:
        """Note what was seen of an evicted value; the next load of an account is a first load."""
        if core.header is not None and core.header.owner is not None and core.co_id in self._completed:
            self._evicted.add(core, core.header.owner)
        else:
            self._completed.discard(core.co_id)
        if self._removals is not None:
            self._removals.forget(core.co_id)

    def flush(self) -> None:
        """Record the removals of this event-loop turn now, so that a flush of the node waits for the record as well."""
        if self._removals is not None:
            self._removals.flush()

    def close(self) -> None:
        """Record nothing more: the node has ended."""
        if self._removals is not None:
            self._removals.close()

    def record_in(self, removals: Removals) -> None:
        """Start to record removals, and apply the recorded ones to the values in memory and to later loads."""
        self._removals = removals
        self._completed -= self._evicted.forget()  # their next load is a first load, for which removals are applied
        for co_id in self._completed:
            removals.apply(self._store.core(co_id))

    def _is_after_removal(self, core: Core, item: Transaction) -> bool:
        state = governing_state(self._store, core)
        if state is None:
            return False
        in_group = core.governing == core.co_id
        now = write_rank(item.session, state.role_of(item.author), in_group=in_group)
        return now < rank_at(state, item.author, item.made_at, item.session, in_group=in_group)


def governing_state(store: Store, value: Governed) -> GroupState | None:
    """Return the state of the group that decides who may write a value: its owner, or the group itself."""
    found = None if value.governing is None else store.group_state(value.governing)
    return found if isinstance(found, GroupState) else None


def rank_at(state: GroupState, author: str, at: int, session: str = "", *, in_group: bool) -> int:
    """Return the highest rank (`write_rank`) of what an author could write at a time (ms since the epoch)."""
    if not in_group:
        return write_rank(session, state.role_of(author, at), in_group=False)
    return max(write_rank(session, role, in_group=True) for role in state.roles_within(author, at))


def write_rank(session: str, role: str | None, *, in_group: bool) -> int:
    """Rank what a role may write to a group, or to a value of a group; 0 means that it may not write."""
    if in_group:
        return {"admin": 3, "manager": 2}.get(role or "", 1 if role in INVITES else 0)
    return int(role == "admin") if is_delete_session(session) else int(role in WRITERS)
