"""Removals that outlive the process: who lost the right to write a value, and what was seen by then.

Without this, whoever was removed could wait for the node's next start, whose first load takes all as seen before.
The notes are a map owned by the node's own account, so all processes of the account share them, nobody else reads
them, and the sync server keeps them. A key is a value's id; under it stand, by author, the time of the removal and the
number of transactions seen of each session. At the next first load, what goes beyond and is dated before the removal is
barred. `everyone` stands for the strangers that wrote while everyone was a writer.

Not noted is what was not loaded at the time of a removal: the first load after it takes what it finds.
"""

import asyncio
from typing import Final, Protocol, TypeAlias

from reside.jazz.ids import EVERYONE, CoId, Json, author_of
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.removals.guard import AFTER_REMOVAL, governing_state, power
from reside.jazz.rules.group_state import GroupState
from reside.jazz.wire.session import Transaction

UNIQUE_NAME: Final = "reside.jazz/removals"
"""Name of the map among those of the account; load-bearing: under another one, what was noted is forgotten."""
_Note: TypeAlias = dict[str, Json]
"""`{"at": time of the removal, "seen": {session: count}}`"""


class Notes(Protocol):
    """Where removals are noted: a `CoMap`."""

    @property
    def id(self) -> CoId:
        """The map's id."""

    def get(self, key: str) -> Json:
        """Return what stands under a key; None if nothing does."""

    def set(self, key: str, value: Json) -> None:
        """Write under a key."""


class RemovalRecord:
    """Notes removals, and recalls them.

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
        """Have a value looked at once the present turn of the event loop is over."""
        if core.co_id in (self._notes.id, self._store.account_id):
            return
        if not self._marked:
            asyncio.get_running_loop().call_soon(self.flush)
        self._marked[core.co_id] = core

    def note(self, core: Core) -> None:
        """Note who lost the right to write a value since it was looked at last."""
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
        """Bar what a first load brought although its author was removed before; then notes what is new."""
        barred = self._to_bar(core, self._known(core))
        for item in barred:
            item.barred = AFTER_REMOVAL
        if barred:
            core.bar()
            self._store.changed(core)
        self.note(core)

    def flush(self) -> None:
        """Look now at the values that were marked."""
        marked, self._marked = self._marked, {}
        for core in marked.values():
            self.note(core)

    def _to_bar(self, core: Core, known: dict[str, _Note]) -> list[Transaction]:
        state = governing_state(self._store, core)
        strangers = known.get(EVERYONE)

        def note_of(item: Transaction) -> _Note | None:
            stranger = state is not None and power(core, item.session, state.role_of(item.author)) == 0
            return known.get(item.author) or (strangers if stranger else None)

        return [item for item in core.transactions if _goes_beyond(note_of(item), item)]

    def _losses_in(self, core: Core, state: GroupState) -> "_Losses":
        """Return the losses by one state of a group are found out once for all values that it owns."""
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
    """Who lost power by one state of a group, and when.

    Args:
        state: the group's.
        core: the group, or one of its values: they are alike in what a role may do to them.
        revision: of the group.
    """

    def __init__(self, state: GroupState, core: Core, revision: int) -> None:
        self.revision = revision
        self._state = state
        self._core = core
        members = {member for group in state.lineage() for member in group.member_keys()}
        self._at = {author: _lost_at(core, state, author) for author in (*members, EVERYONE)}

    def of(self, others: set[str]) -> dict[str, int]:
        """Return when each author lost power: every member there ever was, here and above, and some others."""
        for author in others - self._at.keys():
            self._at[author] = _lost_at(self._core, self._state, author)
        return {author: at for author, at in self._at.items() if at is not None}


def _lost_at(core: Core, state: GroupState, author: str) -> int | None:
    """Return when an author last lost power over a value; None if it never did."""
    lost, before = None, 0
    for epoch in state.epochs():
        now = power(core, "", state.role_of(author, epoch))
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
