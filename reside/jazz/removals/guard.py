"""Refusing what a signature can't prove: when something was written (docs/jazz-protocol.md, section 5).

A transaction's time is its author's word. So a member that was removed can date a write back to when it was one, and a
clock that runs ahead wins over all others. A node can be told to refuse, besides what the roles forbid,

* what it sees first after its author lost the right to write it, however it is dated. What it saw before stays valid;
  what arrives together with the removal, or in the first load of a value, counts as seen before. A member that honestly
  wrote before its removal, but was offline, loses that write here.
* what is dated further ahead than a limit, by the node's clock, at the moment it arrives.

Such a transaction is refused for as long as the node lives. These are decisions of one node: another that saw things in
another order, or has no such policy, comes to another content. `RemovalRecord` carries the first one over restarts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from reside.jazz.ids import CoId, is_delete_session
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.rules.group_state import INVITES, WRITERS, GroupState
from reside.jazz.wire.session import Transaction

AFTER_REMOVAL: Final = "it was first seen here after its author lost the right to write it"


@dataclass(frozen=True)
class WritePolicy:
    """What a node refuses besides what the roles forbid.

    Attributes:
        refuse_after_removal: transactions first seen after their author's removal.
        max_ahead_ms: transactions dated further ahead of the node's clock than this, in ms; None for no limit.
        remember: keep removals over restarts, in a private map of the node's account.
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
    """What carries removals over restarts: `RemovalRecord`."""

    def mark(self, core: Core) -> None:
        """Have a value looked at soon."""

    def note(self, core: Core) -> None:
        """Note who lost the right to write a value."""

    def apply(self, core: Core) -> None:
        """Bar what a first load of a value brought although its author was removed before."""

    def flush(self) -> None:
        """Look now at the values that it has looked at soon."""


class WriteGuard:
    """Applies a policy to what arrives.

    Args:
        store: the values.
        policy: what to refuse.
        clock: gives ms since the epoch.
    """

    def __init__(self, store: Store, policy: WritePolicy, clock: Callable[[], int]) -> None:
        self._store = store
        self.policy = policy
        self._clock = clock
        self._removals: Removals | None = None
        self._whole: set[CoId] = set()

    def is_whole(self, core: Core) -> bool:
        """Return whether a value was loaded completely before: what arrives now is new."""
        return core.co_id in self._whole

    def arriving(self, core: Core, transactions: Sequence[Transaction], *, new: bool) -> None:
        """Bar transactions that are about to be taken into a value's log.

        Args:
            core: the value.
            transactions: of one session, verified.
            new: the value was whole when they came.
        """
        limit = self.policy.max_ahead_ms
        if limit is not None:
            latest = self._clock() + limit
            for item in transactions:
                if item.made_at > latest:
                    item.barred = f"it is dated {item.made_at - latest + limit} ms ahead of this node's clock"
        if new and self.policy.refuse_after_removal:
            if self._removals is not None:
                self._removals.note(core)
            for item in transactions:
                if item.barred is None and self._is_after_removal(core, item):
                    item.barred = AFTER_REMOVAL

    def arrived(self, core: Core) -> None:
        """Return a message about a value was taken in; perhaps the value is whole now for the first time."""
        if core.co_id not in self._whole and core.is_complete():
            self._whole.add(core.co_id)
            if self._removals is not None:
                self._removals.apply(core)

    def made_here(self, core: Core) -> None:
        """Return a value was made by this node: all that others write to it is new."""
        self._whole.add(core.co_id)

    def changed(self, core: Core) -> None:
        """Return a value, or the permissions above it, changed."""
        if self._removals is not None and core.co_id in self._whole:
            self._removals.mark(core)

    def flush(self) -> None:
        """Note now what this turn of the event loop removed; a flush has to wait for those notes too."""
        if self._removals is not None:
            self._removals.flush()

    def record_in(self, removals: Removals) -> None:
        """Return from now on removals are noted, and those noted before are applied to what is here and what will come."""
        self._removals = removals
        for co_id in self._whole:
            removals.apply(self._store.core(co_id))

    def _is_after_removal(self, core: Core, item: Transaction) -> bool:
        state = governing_state(self._store, core)
        if state is None:
            return False
        now, then = state.role_of(item.author), state.role_of(item.author, item.made_at)
        return power(core, item.session, now) < power(core, item.session, then)


def governing_state(store: Store, core: Core) -> GroupState | None:
    """Return the group that says who may write a value: its owner, or itself if it is a group."""
    if core.header is None:
        return None
    found = store.group_state(core.co_id) if core.header.is_group else store.owner_of(core.header)
    return found if isinstance(found, GroupState) else None


def power(core: Core, session: str, role: str | None) -> int:
    """Return how much a role may write to a value: 0 is nothing that counts by its role."""
    if core.header is not None and core.header.is_group:
        return {"admin": 3, "manager": 2}.get(role or "", 1 if role in INVITES else 0)
    return int(role == "admin") if is_delete_session(session) else int(role in WRITERS)
