"""Which values JavaScript readers see alike, although several sessions wrote to them in the same millisecond.

JavaScript takes such transactions in their order of arrival. For a group all orders are tried: if all give the same
verdicts and the same content, so must Python. Other values with ties are not compared, nor what depends on them.
"""

from __future__ import annotations

from itertools import product
from math import factorial, prod
from typing import TYPE_CHECKING, Any

from reside.jazz.ids import CoId
from reside.jazz.rules.group_state import GroupState
from reside.jazz.rules.permissions import GroupValidator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reside.jazz.memory.covalue import Core
    from reside.jazz.memory.store import Store
    from reside.jazz.wire.session import Transaction

_MAX_ORDERS = 500
"""If a group has more orders, it is not compared."""


def comparable(store: Store, ids: Sequence[str]) -> list[str]:
    """Return the ids of the values that do not depend on the order of arrival."""
    good: dict[str, bool] = {}

    def is_good(co_id: str) -> bool:
        if co_id not in good:
            good[co_id] = True  # while it is being decided: groups extend older ones only
            core = store.core(co_id)
            state = store.group_state(co_id)
            needed = [*state.parents] if isinstance(state, GroupState) else []
            if core.header is not None and core.header.owner is not None:
                needed.append(core.header.owner)
            good[co_id] = all(is_good(CoId(other)) for other in needed) and not _depends_on_arrival(store, core)
        return good[co_id]

    return [co_id for co_id in ids if is_good(co_id)]


def _depends_on_arrival(store: Store, core: Core) -> bool:
    at: dict[int, dict[str, list[Transaction]]] = {}
    for item in sorted(core.transactions, key=lambda item: item.made_at):
        at.setdefault(item.made_at, {}).setdefault(item.session, []).append(item)
    if all(len(sessions) == 1 for sessions in at.values()):
        return False
    if core.header is None or not core.header.is_group:
        return True
    lengths = [[len(items) for items in sessions.values()] for sessions in at.values()]
    if prod(factorial(sum(each)) // prod(map(factorial, each)) for each in lengths) > _MAX_ORDERS:
        return True
    orders = product(*([*_interleaved(list(sessions.values()))] for sessions in at.values()))
    results = (_result(store, core, [item for part in order for item in part]) for order in orders)
    first = next(results)
    return any(result != first for result in results)


def _interleaved(sessions: list[list[Transaction]]) -> Iterator[list[Transaction]]:
    """Yield all orders of some sessions' transactions; each session keeps its own."""
    if not any(sessions):
        yield []
    for place, items in enumerate(sessions):
        if items:
            rest = [*sessions[:place], items[1:], *sessions[place + 1 :]]
            for following in _interleaved(rest):
                yield [items[0], *following]


def _result(store: Store, core: Core, order: list[Transaction]) -> Any:
    """Return the verdicts and the content at each time, if a group's transactions arrived in an order."""
    assert core.header is not None
    state = GroupState(core.co_id, None, store.group_state)
    validator = GroupValidator(state, core.header.initial_admin or "")
    for item in order:
        state.cursor = item.made_at
        validator.settle(validator.judge(item))
    refused = {
        (item.transaction.session, item.transaction.index) for item in state.verdicts if item.refusal is not None
    }
    content = {key: {entry.made_at: entry.value for entry in entries} for key, entries in state.entries.items()}
    return refused, content
