"""The valid, readable transactions of a value that a group owns, and the view that is built from them.

Callers read content only through this module. A transaction counts only if its author's role permitted it at its time.
All transactions are validated again if the owning group or a parent changed at a time that affects one of them, or
revealed a key that was missing for one of them. All are decrypted again if a key may have come from a transaction that
no longer counts. So a node that loaded the value before a change sees the same content as a node that loads it later.

Content that was not read for long is dropped (`reside.jazz.memory.decoded`), and decoded again by the next read. Which
transactions count is kept, so subscribers are notified only of changes, as before.

The view of a branch has the transactions of its source as well, up to the start of the branch; those of the source's
source up to the start of the source, and so on.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from reside.jazz.memory.covalue import Core
from reside.jazz.memory.decoded import cost_of, drop_changes
from reside.jazz.memory.store import Store
from reside.jazz.rules.deletion import refusal_of_deletion
from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.permissions import refusal_of_write
from reside.jazz.values.branching import Counts, start_of
from reside.jazz.values.decoding import Decoder
from reside.jazz.values.sources import Sources
from reside.jazz.values.span import Span
from reside.jazz.wire.encoding import stable_json
from reside.jazz.wire.session import Transaction

NONE: Final[frozenset[Transaction]] = frozenset()
"""Shared by all values without losers."""


class View(Protocol):
    """The content that is built from a value's valid transactions; the view orders them by time."""

    def reset(self, transactions: Sequence[Transaction], losers: frozenset[Transaction]) -> None:
        """Rebuild the view. `losers`: those that their meta makes invalid."""

    def extend(self, transactions: Sequence[Transaction]) -> None:
        """Add transactions in their order of arrival."""


ViewType = TypeVar("ViewType", bound=View)


class Content:
    """The valid content of one value.

    Args:
        store: contains the owning group.
        core: the value.
        view: receives the valid transactions.
        find_source: for a branch, returns the content of its source if that is in memory; None for other values.

    Attributes:
        valid: the transactions of the value itself that count and can be read, in the order of arrival.
        losers: those of them that their meta makes invalid.
        start: where a branch starts in its source; see `reside.jazz.values.branching`.
        latest: the time of the last change in the view, ms since the epoch; 0 if there is none.
    """

    __slots__ = (
        "__weakref__",
        "_core",
        "_cost",
        "_decoder",
        "_deleted",
        "_dropped",
        "_find_source",
        "_forgotten",
        "_is_kept",
        "_newest",
        "_owner_revision",
        "_policy_refusals",
        "_seen",
        "_source",
        "_sources",
        "_span",
        "_store",
        "_view",
        "latest",
        "losers",
        "start",
        "valid",
    )

    def __init__(
        self, store: Store, core: Core, view: View, find_source: "Callable[[], Content | None] | None" = None
    ) -> None:
        self._store = store
        self._core = core
        self._view = view
        self._seen = 0
        self.valid: list[Transaction] = []
        self.losers = NONE
        self._owner_revision = -1
        self._forgotten = 0
        self._deleted = False
        self._newest = -1
        self._decoder = Decoder(store, core)
        self._policy_refusals = 0
        self._span: Span | None = None
        self._cost = 0
        self._dropped = self._is_kept = False
        self._find_source = find_source
        self._source: Content | None = None
        self._sources = None if find_source is None else Sources(self)
        self.start: Counts | None = None
        self.latest = 0

    def refresh(self, budget: int | None = None, *, read: bool = True) -> None:
        """Update the view from the log and the permissions.

        Args:
            budget: process about this many characters of new transactions, and leave the value stale if there are more;
                None: process all.
            read: whether the view will be read; if False, content that was dropped is decoded only for a change.
        """
        core, header = self._core, self._core.header
        if not core.stale or header is None:
            return
        if self._sources is None:
            core.stale = self._read_log(budget, read=read) or self._dropped
            if header.value_type == "comap" and not self._dropped:
                self._store.decoded.decoded(core, self, self._cost)
            return
        sources = self._sources.levels()
        has_more = False
        for level in (*reversed(sources), self):
            has_more = level._read_log(budget) or has_more
        if self._sources.update() and not self._core.deleted:
            self._reset()
            self._core.revision += 1
        self._core.stale = has_more

    def drop(self) -> None:
        """Drop the decoded content until the next read, unless others refer to the decoded transactions."""
        if self._is_kept or self._core.dependants or self._decoder.has_merged:
            return
        drop_changes(self._core)
        self._view.reset([], NONE)
        self._dropped = self._core.stale = True

    def keep(self) -> None:
        """Never drop the decoded content: somebody reads the transactions."""
        self._is_kept = True

    def source(self) -> "Content | None":
        """Return the content of a branch's source, if that is in memory."""
        if self._source is None and self._find_source is not None:
            self._source = self._find_source()
        return self._source

    def _read_log(self, budget: int | None, *, read: bool = True) -> bool:
        """Update the value's own transactions, and the view with them; return whether there are more than the budget.

        A branch stays stale: its view may still miss changes of its sources.
        """
        core, header = self._core, self._core.header
        if not core.stale or header is None:
            return False
        core.stale = self._sources is not None
        if core.deleted or self._deleted:
            self._delete(core)
        if core.deleted:
            return False
        if core.policy_refusals != self._policy_refusals:
            self._policy_refusals, self._owner_revision = core.policy_refusals, -1
        owner = self._store.owner_of(header)
        revision, content_changed = 0, False
        if header.owner is not None:
            group = self._store.core(header.owner)
            revision = group.revision
            if group.forgotten != self._forgotten:
                self._forgotten, self._owner_revision, content_changed = group.forgotten, -1, True
                self._decoder.forget()
        seen = self._seen
        affected = seen > 0 and revision != self._owner_revision and self._is_affected(header.owner)
        self._owner_revision = revision
        if self._dropped and (read or affected or seen < len(core.transactions)):
            affected = not self._decode_again() or affected
        if affected:
            content_changed = self._decoder.forget_validity() or content_changed
        fresh = core.transactions if affected else _within(budget, core.transactions[seen:])
        self._seen = len(fresh) if affected else seen + len(fresh)
        has_more = self._seen < len(core.transactions)
        core.stale = core.stale or has_more
        self._newest = max([self._newest, *[item.made_at for item in fresh]])
        self._cost = (0 if affected else self._cost) + cost_of(core, 0 if affected else seen)
        readable = self._decoder.readable(self._permitted(fresh, owner))
        if affected:
            self._replace_valid(readable, content_changed=content_changed)
        else:
            self._extend(readable)
        return has_more

    def _decode_again(self) -> bool:
        """Decode what was dropped; return whether all of it can be read still."""
        self._dropped = False
        self._decoder.decode(self.valid)
        self._view.reset(*self._shown())
        return all(item.changes is not None for item in self.valid)

    @property
    def is_initialized(self) -> bool:
        """Whether any transaction counts, readable for this account or not. Anyone can upload a header without one."""
        self.refresh()
        header = self._core.header
        owner = None if header is None else self._store.owner_of(header)
        return bool(self.valid) or any(self._refusal(item, owner) is None for item in self._core.transactions)

    def span(self) -> Span:
        """Return the first and the last transaction that count."""
        self.refresh()
        if self._span is None:  # few callers ask for it
            self._span = Span()
        self._span.update(self.valid, self.losers)
        return self._span

    def show_until(self, at: int, view: ViewType) -> ViewType:
        """Fill an empty view with the transactions that count and are dated until a time (ms); takes linear time."""
        self.refresh()
        shown, losers = self._shown()
        view.reset([item for item in shown if item.at <= at], losers)
        return view

    def counting(self) -> list[Transaction]:
        """Return the transactions of the value itself that count, in the order of arrival. Do not modify them."""
        self.refresh()
        return [item for item in self.valid if item not in self.losers]

    def refusals(self) -> list[tuple[Transaction, str | None]]:
        """Return each transaction of the log with the reason why it does not count; None if it does."""
        self.refresh()
        header = self._core.header
        owner = None if header is None else self._store.owner_of(header)
        found = []
        for item in self._core.transactions:
            refusal = self._refusal(item, owner)
            if refusal is None and not self._decoder.readable([item]):
                refusal = "it can't be read: its key was not revealed to this account, or it is malformed"
            if refusal is None and item.at > item.made_at:
                refusal = "its merge is dated before the transaction itself"
            if refusal is None and item in self.losers:
                refusal = "another transaction was the first writer of what it initialises (meta `fww`)"
            found.append((item, refusal))
        return found

    def _delete(self, core: Core) -> None:
        """Empty the content of a deleted value; restore it if the deletion turned out to be invalid."""
        self._owner_revision = -1
        self._dropped = False
        self._replace_valid([])
        if core.deleted != self._deleted:
            self._deleted = core.deleted
            core.revision += 1

    def _is_affected(self, owner_id: str | None) -> bool:
        """Return whether a change of the owning group may change the verdict on a validated transaction."""
        if owner_id is None or self._owner_revision < 0:
            return True
        changed_since = self._store.core(owner_id).changed_since(self._owner_revision)
        return self._decoder.has_new_key() or changed_since <= self._newest

    def _extend(self, fresh: list[Transaction]) -> None:
        if not fresh:
            return
        self.valid.extend(fresh)
        self.latest = max(self.latest, _latest(fresh))
        if self.losers or any(item.meta_value for item in fresh):
            self._reset()
        else:
            self._view.extend(fresh)
        self._core.revision += 1

    def _replace_valid(self, valid: list[Transaction], *, content_changed: bool = False) -> None:
        """Replace the valid transactions; if `content_changed`, the same transactions may have other content."""
        header = self._core.header
        if not content_changed and valid == self.valid and (header is None or not header.restrict_deletion):
            return  # if deletion is restricted, the same transactions may delete fewer or more items than before
        self.valid = valid
        self._reset()
        self._core.revision += 1

    def _reset(self) -> None:
        self.losers = _losers(self.valid)
        if self._sources is not None:
            self.start = start_of(self.valid)
            self._sources.update()
        shown, losers = self._shown()
        self._view.reset(shown, losers)
        self.latest = _latest(shown)

    def _shown(self) -> tuple[list[Transaction], frozenset[Transaction]]:
        """Return the transactions in the view, and those of them that their meta makes invalid."""
        if self._sources is None or self._core.deleted:
            return self.valid, self.losers
        return self._sources.transactions() + self.valid, self._sources.losers() | self.losers

    def _permitted(self, transactions: Iterable[Transaction], owner: GroupState | None) -> list[Transaction]:
        """Return the transactions that `_refusal` permits.

        Consecutive transactions often have one author, whose role is looked up once.
        """
        if owner is None or self._core.deletions:
            return [item for item in transactions if self._refusal(item, owner) is None]
        found = []
        author, since, until = "", 0, 0
        for item in transactions:
            if item.author != author or not since <= item.made_at < until or item.policy_refusal is not None:
                if self._refusal(item, owner) is not None:
                    continue
                author, (since, until) = item.author, owner.writes_during(item.author, item.made_at)
            found.append(item)
        return found

    def _refusal(self, transaction: Transaction, owner: GroupState | None) -> str | None:
        header = self._core.header
        if transaction.policy_refusal is not None:
            return transaction.policy_refusal
        if header is not None and transaction in self._core.deletions:
            return refusal_of_deletion(transaction, header, owner)
        if self._core.deleted:
            return "the value was deleted"
        if owner is not None:
            return refusal_of_write(owner, transaction)
        if header is not None and header.owner is None:
            return None
        return "the owning group is not loaded"


def _within(budget: int | None, transactions: list[Transaction]) -> list[Transaction]:
    """Return the first transactions: as many as the budget of characters allows, at least one."""
    if budget is None:
        return transactions
    for count, item in enumerate(transactions, 1):
        budget -= len(item.payload)
        if budget <= 0:
            return transactions[:count]
    return transactions


def _latest(valid: Iterable[Transaction]) -> int:
    """Return the time of the last change; readers may write transactions without changes, which point to branches."""
    return max((item.made_at for item in valid if item.is_private or item.changes), default=0)


def _losers(valid: Sequence[Transaction]) -> frozenset[Transaction]:
    """Return the transactions that their meta makes invalid.

    These are copies whose origin is later than their merge, and transactions whose first-writer-wins key (meta `fww`)
    an earlier one has.
    """
    winners: dict[str, Transaction] = {}
    losers = {item for item in valid if item.origin is not None and item.at > item.made_at}
    naming = [(item, item.meta_value["fww"]) for item in valid if item.meta_value and "fww" in item.meta_value]
    for item, named in sorted(naming, key=lambda pair: pair[0].when):
        if isinstance(named, dict | list):
            continue  # JavaScript compares these by identity, so no two are equal
        key = stable_json(named)
        if key in winners:
            losers.add(item)
        else:
            winners[key] = item
    return frozenset(losers) if losers else NONE
