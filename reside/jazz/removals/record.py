"""A record of removals across restarts: which authors lost the right to write a value, and what was seen by then.

Without this record, a removed member could wait until the node restarts, because a first load accepts everything as
seen before. The record is a map owned by the node's own account: all processes of the account share it, no one else can
read it, and the sync server stores it. A key is a value's id. Its value has for each author the time of the removal and
the number of transactions seen of each session. A later first load refuses transactions that go beyond these numbers
and are dated before the removal. `everyone` covers non-members that wrote while everyone was a writer.

A removal is not recorded for values that were not loaded at that time; their first load accepts what it finds.
"""

import asyncio
from typing import Final, Protocol, TypeAlias

from reside.jazz.ids import EVERYONE, CoId, Json, author_of
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.removals.guard import AFTER_REMOVAL, governing_state, write_rank
from reside.jazz.rules.group_state import GroupState
from reside.jazz.wire.session import Transaction

UNIQUE_NAME: Final = "reside.jazz/removals"
"""Unique name of the map in the account. Never change it: with another name, recorded removals are lost."""
_Note: TypeAlias = dict[str, Json]
"""`{"at": time of the removal, "seen": {session: count}}`"""


class Notes(Protocol):
    """The map in which removals are recorded: a `CoMap`."""

    @property
    def id(self) -> CoId:
        """The map's id."""

    def get(self, key: str) -> Json:
        """Return the value of a key; None if there is none."""

    def set(self, key: str, value: Json) -> None:
        """Set a key."""


class RemovalRecord:
    """Records removals and applies them.

    Args:
        store: the values.
        notes: the map.
    """

    def __init__(self, store: Store, notes: Notes) -> None:
        self._store = store
        self._notes = notes
        self._noted_at: dict[str, int] = {}
        self._marked: dict[str, Core] = {}
        self._losses: dict[tuple[str, bool], _Losses] = {}

    def mark(self, core: Core) -> None:
        """Check a value after the current event-loop turn."""
        if core.co_id in (self._notes.id, self._store.account_id):
            return
        if not self._marked:
            asyncio.get_running_loop().call_soon(self.flush)
        self._marked[core.co_id] = core

    def note(self, core: Core) -> None:
        """Record the authors that lost the right to write a value since the last check."""
        state = governing_state(self._store, core)
        if state is None or self._noted_at.get(core.co_id) == self._revision(core):
            return
        self._noted_at[core.co_id] = self._revision(core)
        known = self._known(core)
        lost = self._losses_in(core, state).of({author_of(session) for session in core.sessions})
        fresh = {
            author: {"at": at, "seen": _seen_of(core, author)}
            for author, at in lost.items()
            if known.get(author, {}).get("at") != at
        }
        if fresh:
            self._notes.set(core.co_id, known | fresh)

    def apply(self, core: Core) -> None:
        """Refuse transactions of a first load whose author was removed before, and then record new removals."""
        refused = self._to_refuse(core, self._known(core))
        for item in refused:
            item.policy_refusal = AFTER_REMOVAL
        if refused:
            core.restart_validation()
            self._store.changed(core)
        self.note(core)

    def flush(self) -> None:
        """Check the marked values now."""
        marked, self._marked = self._marked, {}
        for core in marked.values():
            self.note(core)

    def _to_refuse(self, core: Core, known: dict[str, _Note]) -> list[Transaction]:
        state = governing_state(self._store, core)
        non_members = known.get(EVERYONE)

        def note_of(item: Transaction) -> _Note | None:
            is_non_member = state is not None and write_rank(core, item.session, state.role_of(item.author)) == 0
            return known.get(item.author) or (non_members if is_non_member else None)

        return [item for item in core.transactions if _goes_beyond(note_of(item), item)]

    def _losses_in(self, core: Core, state: GroupState) -> "_Losses":
        """Return the decreases of `write_rank` in a state of a group, cached for all values that the group owns."""
        revision, is_itself = self._revision(core), state.co_id == core.co_id
        losses = self._losses.get((state.co_id, is_itself))
        if losses is None or losses.revision != revision:
            losses = self._losses[state.co_id, is_itself] = _Losses(state, core, revision)
        return losses

    def _known(self, core: Core) -> dict[str, _Note]:
        known = self._notes.get(core.co_id)
        return known if isinstance(known, dict) else {}

    def _revision(self, core: Core) -> int:
        owner_id = None if core.header is None else core.header.owner
        return core.revision if owner_id is None else self._store.core(owner_id).revision


class _Losses:
    """When the `write_rank` of authors decreased in the history of a group.

    Args:
        state: the group's state.
        core: the group or one of its values; all its values give the same result.
        revision: the group's revision.
    """

    def __init__(self, state: GroupState, core: Core, revision: int) -> None:
        self.revision = revision
        self._state = state
        self._core = core
        members = {member for group in state.lineage() for member in group.member_keys()}
        self._at = {author: _lost_at(core, state, author) for author in (*members, EVERYONE)}

    def of(self, others: set[str]) -> dict[str, int]:
        """Return when the rank of each author decreased: of all members, current and former, and of `others`."""
        for author in others - self._at.keys():
            self._at[author] = _lost_at(self._core, self._state, author)
        return {author: at for author, at in self._at.items() if at is not None}


def _lost_at(core: Core, state: GroupState, author: str) -> int | None:
    """Return when an author's rank for a value last decreased; None if it never did."""
    lost, before = None, 0
    for epoch in state.epochs():
        now = write_rank(core, "", state.role_of(author, epoch))
        if now < before:
            lost = epoch
        before = now
    return lost


def _seen_of(core: Core, author: str) -> dict[str, int]:
    return {session: count for session, count in core.counts().items() if author in (EVERYONE, author_of(session))}


def _goes_beyond(note: _Note | None, item: Transaction) -> bool:
    if note is None:
        return False
    seen = note["seen"].get(item.session, 0)
    return bool(item.made_at < note["at"] and item.index >= seen)
