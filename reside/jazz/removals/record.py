"""A record of removals across restarts: which authors lost the right to write a value, and what was seen by then.

Without this record, a removed member could wait until the node restarts, because a first load accepts everything as
seen before. The record is a map owned by the node's own account: all processes of the account share it, no one else can
read it, and the sync server stores it. A key is a value's id. Its value has for each author the time of the removal and
the number of transactions seen of each session. A later first load refuses transactions that go beyond these numbers
and are not dated after the removal. `everyone` covers non-members that wrote while everyone was a writer.

A removal is not recorded for values that were not loaded at that time; their first load accepts what it finds.
"""

import asyncio
from typing import Final, Protocol, TypeAlias

from reside.jazz.ids import EVERYONE, CoId, Json, author_of
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.removals.guard import AFTER_REMOVAL, governing_state, rank_at, write_rank
from reside.jazz.removals.seen import Governed
from reside.jazz.rules.group_state import GroupState
from reside.jazz.wire.session import Transaction

UNIQUE_NAME: Final = "reside.jazz/removals"
"""Unique name of the map in the account. Never change it: with another name, recorded removals are lost."""
_Note: TypeAlias = dict[str, Json]
"""`{"at": time of the removal, "seen": {session: count}}`"""


class Notes(Protocol):
    """The map in which removals are recorded."""

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
        self._marked: dict[str, Governed] = {}
        self._is_closed = False
        self._losses: dict[tuple[str, bool], _Losses] = {}

    def mark(self, value: Governed) -> None:
        """Check a value, which may be evicted, after the current event-loop turn."""
        if self._is_closed or value.co_id in (self._notes.id, self._store.account_id):
            return
        if not self._marked:
            asyncio.get_running_loop().call_soon(self.flush)
        self._marked[value.co_id] = value

    def note(self, value: Governed) -> None:
        """Record the authors that lost the right to write a value since the last check."""
        state = governing_state(self._store, value)
        if state is None or self._noted_at.get(value.co_id) == self._revision(state):
            return
        self._noted_at[value.co_id] = self._revision(state)
        known = self._known(value.co_id)
        lost = self._losses_in(value, state).of(state, {author_of(session) for session in value.sessions})
        fresh = {
            author: {"at": at, "seen": _seen_of(value, author)}
            for author, at in lost.items()
            if known.get(author, {}).get("at") != at
        }
        if fresh:
            self._notes.set(value.co_id, known | fresh)

    def apply(self, core: Core) -> None:
        """Refuse transactions of a first load whose author was removed before, and then record new removals."""
        refused = self._to_refuse(core, self._known(core.co_id))
        for item in refused:
            item.policy_refusal = AFTER_REMOVAL
        if refused:
            core.restart_validation()
            self._store.changed(core)
        self.note(core)

    def flush(self) -> None:
        """Check the marked values now."""
        marked, self._marked = self._marked, {}
        for value in marked.values():
            self.note(value)

    def close(self) -> None:
        """Record nothing more: the node has ended, and can't write."""
        self._is_closed = True
        self._marked.clear()

    def forget(self, co_id: CoId) -> None:
        """Forget what is cached for a value that is evicted."""
        self._noted_at.pop(co_id, None)
        for is_itself in (True, False):
            self._losses.pop((co_id, is_itself), None)

    def _to_refuse(self, core: Core, known: dict[str, _Note]) -> list[Transaction]:
        state = governing_state(self._store, core)
        non_members, in_group = known.get(EVERYONE), core.governing == core.co_id

        def note_of(item: Transaction) -> _Note | None:
            is_non_member = state is not None and (
                write_rank(item.session, state.role_of(item.author), in_group=in_group) == 0
            )
            return known.get(item.author) or (non_members if is_non_member else None)

        return [item for item in core.transactions if _goes_beyond(note_of(item), item)]

    def _losses_in(self, value: Governed, state: GroupState) -> "_Losses":
        """Return the decreases of `write_rank` in a state of a group, cached for all values that the group owns."""
        revision, is_itself = self._revision(state), state.co_id == value.co_id
        losses = self._losses.get((state.co_id, is_itself))
        if losses is None or losses.revision != revision:
            losses = self._losses[state.co_id, is_itself] = _Losses(state, revision, in_group=is_itself)
        return losses

    def _known(self, co_id: str) -> dict[str, _Note]:
        known = self._notes.get(co_id)
        return known if isinstance(known, dict) else {}

    def _revision(self, state: GroupState) -> int:
        return self._store.core(state.co_id).revision


class _Losses:
    """When the `write_rank` of authors decreased in the history of a group. It does not keep the state in memory.

    Args:
        state: the group's state.
        revision: the group's revision.
        in_group: whether to rank what is written to the group itself, and not to its values.
    """

    def __init__(self, state: GroupState, revision: int, *, in_group: bool) -> None:
        self.revision = revision
        self._in_group = in_group
        members = {member for group in state.lineage() for member in group.member_keys()}
        self._at = {author: _lost_at(state, author, in_group=in_group) for author in (*members, EVERYONE)}

    def of(self, state: GroupState, others: set[str]) -> dict[str, int]:
        """Return when the rank of each author decreased: of all members, current and former, and of `others`.

        Args:
            state: the state of the same revision.
            others: further authors.
        """
        for author in others - self._at.keys():
            self._at[author] = _lost_at(state, author, in_group=self._in_group)
        return {author: at for author, at in self._at.items() if at is not None}


def _lost_at(state: GroupState, author: str, *, in_group: bool) -> int | None:
    """Return when an author's rank last decreased, also within a millisecond; None if it never did."""
    lost, before = None, 0
    for epoch in state.epochs():
        now = write_rank("", state.role_of(author, epoch), in_group=in_group)
        if now < max(before, rank_at(state, author, epoch, in_group=in_group)):
            lost = epoch
        before = now
    return lost


def _seen_of(value: Governed, author: str) -> dict[str, int]:
    return {session: count for session, count in value.counts().items() if author in (EVERYONE, author_of(session))}


def _goes_beyond(note: _Note | None, item: Transaction) -> bool:
    if note is None:
        return False
    seen = note["seen"].get(item.session, 0)
    return bool(item.made_at <= note["at"] and item.index >= seen)
