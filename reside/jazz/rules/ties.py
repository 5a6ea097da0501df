"""The order of a group's transactions of one millisecond in several sessions (docs/jazz-protocol.md, section 5).

The JavaScript library takes them in their order of arrival, so its readers may differ. Here the order depends only on
the transactions, and it is one in which a JavaScript reader may have received them: so where JavaScript does not depend
on the arrival, the verdicts are equal. Of these orders it is one in which a role that is given in a millisecond can be
used in the same millisecond, because honest writers use only roles that they have seen.

Invariants:
    Each session keeps its own order. A transaction is judged again only after a change that may make it valid, so that
    strangers, who can't make such changes, can't make the work quadratic.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Final, Literal, Protocol, TypeAlias

from reside.jazz.ids import Json
from reside.jazz.wire.session import Transaction

EVERYBODY: Final = "*"
"""Returned by `Judge.settle` if any refused transaction may be valid now."""
Kind: TypeAlias = Literal["setting", "reveal", "parent", "child", "writeKey", "role"]
"""What a change of a group sets."""
_NO_CHANGE: Final[Mapping[str, Json]] = {}
_State: TypeAlias = Literal["ready", "taking", "refused"]


class Ruling:
    """The verdict on a transaction at one point of a validation pass.

    Attributes:
        transaction: the transaction.
        role: its author's role for changes of the group at that point.
        refusal: why it is invalid; None if it is valid.
        kind: what its change sets; None if it has no change of the right form.
        key: the key that its change sets.
        change: its change.
    """

    __slots__ = ("change", "key", "kind", "refusal", "role", "transaction")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.role: str | None = None
        self.refusal: str | None = None
        self.kind: Kind | None = None
        self.key = ""
        self.change: Mapping[str, Json] = _NO_CHANGE


class Judge(Protocol):
    """A validation pass; `GroupValidator` implements it."""

    def judge(self, transaction: Transaction) -> Ruling:
        """Return the verdict on a transaction if it were the next, without taking it."""

    def takes_away(self, ruling: Ruling) -> bool:
        """Return whether a valid transaction ends or lowers a role, so that it may make others of its time invalid."""

    def settle(self, ruling: Ruling) -> str | None:
        """Take the next transaction, with this verdict.

        Returns:
            the member whose refused transactions may be valid now; `EVERYBODY` for all members, None for nobody.
        """

    def has_power(self, member: str) -> bool:
        """Return whether a member has a role that may change the group."""


def settle_tie(judge: Judge, tied: Iterable[Transaction]) -> None:
    """Take the transactions of one millisecond.

    The sessions are ordered by id. Of each, transactions are taken as long as they are valid and take no role away.
    When no session has such a next transaction, one that takes a role away is taken, and when there is none, one is
    refused: first of the authors that may change the group. After each of these the search continues with all sessions.

    Args:
        judge: the pass.
        tied: transactions of one time, sorted by session, each session in its order.
    """
    _Tie(judge, tied).run()


class _Tie:
    def __init__(self, judge: Judge, tied: Iterable[Transaction]) -> None:
        self._judge = judge
        self._queues: list[deque[Transaction]] = []
        self._sessions_of: dict[str, list[int]] = {}
        session = None
        for item in tied:
            if item.session != session:
                session = item.session
                self._sessions_of.setdefault(item.author, []).append(len(self._queues))
                self._queues.append(deque())
            self._queues[-1].append(item)
        self._states: list[_State] = ["ready"] * len(self._queues)
        self._ready = list(range(len(self._queues)))
        self._taking: list[int] = []
        self._refused: list[tuple[bool, int]] = []

    def run(self) -> None:
        """Take all transactions."""
        while True:
            if self._ready:
                self._advance(heappop(self._ready))
            elif self._taking:
                place = heappop(self._taking)
                ruling = self._judge.judge(self._queues[place][0])
                self._take(place, ruling) if ruling.refusal is None else self._set_refused(place)
            elif self._refused:
                _, place = heappop(self._refused)
                if self._states[place] == "refused" and self._queues[place]:
                    self._take(place, self._judge.judge(self._queues[place][0]))
            else:
                return

    def _advance(self, place: int) -> None:
        """Take transactions of a session as long as they are valid and take no role away."""
        queue = self._queues[place]
        while queue:
            ruling = self._judge.judge(queue[0])
            if ruling.refusal is not None:
                self._set_refused(place)
                return
            if self._judge.takes_away(ruling):
                self._states[place] = "taking"
                heappush(self._taking, place)
                return
            queue.popleft()
            self._wake(self._judge.settle(ruling))

    def _take(self, place: int, ruling: Ruling) -> None:
        """Take the next transaction of a session whatever the verdict, and continue with the session."""
        self._queues[place].popleft()
        self._states[place] = "ready"
        heappush(self._ready, place)
        self._wake(self._judge.settle(ruling))

    def _set_refused(self, place: int) -> None:
        self._states[place] = "refused"
        heappush(self._refused, (not self._judge.has_power(self._queues[place][0].author), place))

    def _wake(self, member: str | None) -> None:
        """Judge refused transactions of a member again."""
        if member is None:
            return
        places = range(len(self._queues)) if member == EVERYBODY else self._sessions_of.get(member, ())
        for place in places:
            if self._states[place] == "refused":
                self._states[place] = "ready"
                heappush(self._ready, place)
