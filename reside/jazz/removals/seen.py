"""What a node had seen of the values that it has evicted, so that a policy decides as if they were still in memory.

The transactions that were seen before an eviction keep their verdicts when the value is loaded again; all others count
as seen first at that time. Removals are recorded for evicted values as well.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reside.jazz.ids import CoId, SessionId
from reside.jazz.memory.covalue import Core
from reside.jazz.wire.session import Transaction


class Governed(Protocol):
    """A value whose writers a group decides: a `Core`, or one that is evicted."""

    @property
    def co_id(self) -> CoId:
        """The value's id."""

    @property
    def governing(self) -> CoId | None:
        """The id of the group; that of the value itself if it is a group."""

    @property
    def sessions(self) -> Collection[SessionId]:
        """The sessions of the value."""

    def counts(self) -> dict[str, int]:
        """Return the number of transactions of each session."""


@dataclass(frozen=True, slots=True)
class SeenValue:
    """What was seen of an evicted value.

    Attributes:
        co_id: the value's id.
        governing: the id of its owner.
        seen: its sessions, each with the number of transactions that were seen.
        refused: session and index of the transactions that the policy refused, each with the reason.
    """

    co_id: CoId
    governing: CoId
    seen: tuple[tuple[SessionId, int], ...]
    refused: Mapping[tuple[SessionId, int], str] | None

    @property
    def sessions(self) -> Collection[SessionId]:
        """The sessions of the value."""
        return [session for session, _ in self.seen]

    def counts(self) -> dict[str, int]:
        """Return the number of transactions of each session."""
        return dict(self.seen)


class EvictedValues:
    """The evicted values, until they are in memory again as completely as they were."""

    def __init__(self) -> None:
        self._values: dict[CoId, SeenValue] = {}
        self._by_owner: dict[CoId, dict[CoId, None]] = {}

    def __contains__(self, co_id: object) -> bool:
        return co_id in self._values

    def get(self, co_id: CoId) -> SeenValue | None:
        """Return what was seen of a value; None if it is in memory."""
        return self._values.get(co_id)

    def add(self, core: Core, owner: CoId) -> None:
        """Note what was seen of a value that is evicted now."""
        before = self._values.get(core.co_id)
        counts = {session: len(log.transactions) for session, log in core.sessions.items()}
        for session, count in () if before is None else before.seen:
            counts[session] = max(count, counts.get(session, 0))
        refused = {(item.session, item.index): item.policy_refusal for item in core.transactions if item.policy_refusal}
        if before is not None and before.refused:
            refused = {**before.refused, **refused}
        self._values[core.co_id] = SeenValue(core.co_id, owner, tuple(counts.items()), refused or None)
        self._by_owner.setdefault(owner, {})[core.co_id] = None

    def new_of(self, core: Core, transactions: Sequence[Transaction]) -> Sequence[Transaction]:
        """Return those of the arriving transactions that were not seen before; the others keep their verdicts."""
        value = self._values.get(core.co_id)
        if value is None:
            return transactions
        counts = value.counts()
        seen = [item for item in transactions if item.index < counts.get(item.session, 0)]
        for item in seen:
            item.policy_refusal = (value.refused or {}).get((item.session, item.index))
        return transactions[len(seen) :]

    def arrived(self, core: Core) -> None:
        """Forget a value that is in memory again as completely as it was."""
        value = self._values.get(core.co_id)
        if value is not None and all(core.count(session) >= count for session, count in value.seen):
            self._forget(value)

    def governed_by(self, group: CoId) -> Iterator[SeenValue]:
        """Yield the evicted values that a group owns."""
        for co_id in self._by_owner.get(group, ()):
            yield self._values[co_id]

    def forget(self) -> set[CoId]:
        """Forget all values; return their ids."""
        forgotten = set(self._values)
        self._values.clear()
        self._by_owner.clear()
        return forgotten

    def _forget(self, value: SeenValue) -> None:
        del self._values[value.co_id]
        owned = self._by_owner[value.governing]
        del owned[value.co_id]
        if not owned:
            del self._by_owner[value.governing]
