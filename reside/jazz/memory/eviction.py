"""Which values may go: those that nobody holds, watches, waits for or writes, and that no value which stays needs.

There is no unsubscribing in the protocol: what the server goes on sending about a value that went is dropped, and the
next connection does not ask for it.
"""

from collections.abc import Iterable

from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.dependencies import needs
from reside.jazz.memory.store import Store


def evictable(store: Store, held: Iterable[str]) -> list[Core]:
    """Return the values that are needed neither by themselves nor for what is held.

    Args:
        store: all values.
        held: ids of those that somebody uses.
    """
    kept: set[str] = set()
    stack = [co_id for co_id in held if co_id in store.cores]
    while stack:
        co_id = stack.pop()
        if co_id in kept:
            continue
        kept.add(co_id)
        core = store.cores[CoId(co_id)]
        needed = [*needs(core), *core.parked]
        if core.validation is not None:
            needed += core.validation.parent_revisions
        stack += [other for other in needed if other in store.cores and other not in kept]
    return [core for co_id, core in store.cores.items() if co_id not in kept]
