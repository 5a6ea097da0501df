"""How much decoded content a node keeps: what was not read lately is dropped, and decoded again by the next read.

Decoded content takes several times the memory of its log. The log stays in memory, so a read waits for no server, and a
change is verified, validated and reported as before. Only small values take part, so that a read costs little; those
beyond `_MAX_COST` stay decoded while somebody refers to them.
"""

from collections import OrderedDict
from typing import Final, Protocol
from weakref import ReferenceType, ref

from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core

_LIMIT: Final = 500_000
"""The sum of the costs (`cost_of`) of the values whose content is kept, although nobody may need it again."""
_MAX_COST: Final = 100_000
"""A value of a greater cost is not dropped: anyone who may write it could make each of its reads slow."""
_COST_OF_TRANSACTION: Final = 200


class Droppable(Protocol):
    """The decoded content of a value; implemented by `reside.jazz.values.content.Content`."""

    def drop(self) -> None:
        """Drop what can be decoded again."""


def cost_of(core: Core, start: int = 0) -> int:
    """Return what it costs to decode the log of a value from a transaction on, about in characters."""
    return sum(len(item.payload) + _COST_OF_TRANSACTION for item in core.transactions[start:])


class DecodedContents:
    """The values with decoded content that can be dropped, those that were read last at the end.

    Args:
        limit: the sum of the costs up to which nothing is dropped.
    """

    def __init__(self, limit: int = _LIMIT) -> None:
        self.limit = limit
        self._entries: OrderedDict[CoId, tuple[Core, ReferenceType[Droppable], int]] = OrderedDict()
        self._total = 0

    def decoded(self, core: Core, content: Droppable, cost: int) -> None:
        """Note that content of a value was decoded, and drop that of the values that were not read for longest."""
        self.forget(core.co_id)
        if cost > _MAX_COST:
            return
        self._entries[core.co_id] = core, ref(content), cost
        self._total += cost
        while self._total > self.limit and len(self._entries) > 1:
            _, (unused, reference, its_cost) = self._entries.popitem(last=False)
            self._total -= its_cost
            found = reference()
            if found is not None:
                found.drop()
            elif not unused.dependants:  # nobody has the value's object, nor a branch that reads its transactions
                drop_changes(unused)

    def used(self, co_id: CoId) -> None:
        """Note that a value is used."""
        if co_id in self._entries:
            self._entries.move_to_end(co_id)

    def forget(self, co_id: CoId) -> None:
        """Forget a value, because it is evicted or its content was dropped."""
        entry = self._entries.pop(co_id, None)
        if entry is not None:
            self._total -= entry[2]


def drop_changes(core: Core) -> None:
    """Drop the decoded changes of a value's encrypted transactions."""
    for item in core.transactions:
        if item.is_private:
            item.changes = None
