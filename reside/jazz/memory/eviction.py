"""Eviction of values that are neither used by the program nor needed by a value that is used.

The protocol has no unsubscribing. What the server still sends about an evicted value is dropped, and the next
connection does not request it.

A policy decides by what was seen when, so a node with one keeps what it has loaded. But it evicts what strangers can
make it load in any number: their accounts, and ids of values that do not exist. Roles in an account never change hands.
"""

from collections.abc import Iterable

from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.dependencies import needs
from reside.jazz.memory.store import Store


def evictable(store: Store, held: Iterable[str]) -> list[Core]:
    """Return the values that can be evicted: those that no value in use needs.

    Args:
        store: all values.
        held: ids of the values in use.
    """
    kept: set[str] = set()
    stack = [co_id for co_id in held if co_id in store.cores]
    if store.guard is not None:
        stack += [core.co_id for core in store.cores.values() if core.header is not None and not core.header.is_account]
    while stack:
        co_id = stack.pop()
        if co_id in kept:
            continue
        kept.add(co_id)
        core = store.cores[CoId(co_id)]
        needed = [*needs(core), *core.deferred]
        if core.validation is not None:
            needed += core.validation.parent_revisions
        stack += [other for other in needed if other in store.cores and other not in kept]
    return [core for co_id, core in store.cores.items() if co_id not in kept]
