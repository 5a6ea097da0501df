"""Eviction of values that are neither used by the program nor needed by a value that is used.

The protocol has no unsubscribing. What the server still sends about an evicted value is dropped, and the next
connection does not request it.

A policy decides by what was seen when. So a node with one keeps all groups, and of an evicted value what it had seen of
it (`reside.jazz.removals.seen`). It also evicts what strangers can make it load in any number: their accounts, and ids
of values that do not exist. Roles in an account never change hands.
"""

from collections.abc import Iterable

from reside.jazz.ids import CoId
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.dependencies import needs
from reside.jazz.memory.store import Guard, Store


def evictable(store: Store, held: Iterable[str]) -> list[Core]:
    """Return the values that can be evicted: those that no value in use needs.

    Args:
        store: all values.
        held: ids of the values in use.
    """
    kept: set[str] = set()
    stack = [co_id for co_id in held if co_id in store.cores]
    if store.guard is not None:
        stack += [core.co_id for core in store.cores.values() if _is_kept_for(store.guard, core, store)]
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


def _is_kept_for(guard: Guard, core: Core, store: Store) -> bool:
    """Return whether a value stays in memory because of a policy: a group, or one that is incomplete or related.

    So does what this process has written to, unless it is released: a server that was restored from a backup gets it
    from here.
    """
    header = core.header
    if header is None or header.is_account:
        return False
    is_written = not core.released and any(log.acknowledged for log in core.sessions.values())
    is_related = header.owner is None or header.source is not None or bool(core.dependants)
    is_partial = core.unconfirmed or core.deferred or core.rejected or (core.skipped and core.skipped.authors)
    # A local store restores values without asking the guard.
    return is_written or is_related or bool(is_partial) or not guard.was_complete(core) or store.restore is not None
