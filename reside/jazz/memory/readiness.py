"""Readiness: what must arrive before a value's content can be validated.

That is the value itself, its owner and the parents of that group, authors, and for a branch its source.
"""

from typing import NamedTuple

from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store
from reside.jazz.rules.group_state import GroupState


class Absent(NamedTuple):
    """A required value that the server does not have."""

    core: Core
    why: str


def missing_for(store: Store, core: Core, *, connected: bool, whole: bool = True) -> list[Core] | Absent:
    """Return the values that must arrive before a value is complete; an empty list if it is.

    Without a connection, what is in memory is all that is available. With a connection, a value that the server has not
    confirmed counts as missing. Parents and authors that the server does not have are not waited for: without them
    there are fewer permissions, not more.

    Args:
        store: all values.
        core: the value.
        connected: whether there is a connection to the server.
        whole: whether the value's own content must be complete; a file can be read before that.

    Returns:
        the missing values, or `Absent` if the server does not have the value, its owner or its source.
    """
    missing: dict[str, Core] = {}
    seen: set[str] = set()
    required = [core]
    optional: list[Core] = []
    while required or optional:
        needed = bool(required)
        current = required.pop() if needed else optional.pop()
        if current.co_id in seen:
            continue
        seen.add(current.co_id)
        if current.header is None:
            if not current.absent:
                missing[current.co_id] = current
            elif needed:
                return Absent(current, _why_absent(core, current))
            continue
        is_here = current.is_complete() and not (connected and current.unconfirmed)
        if not is_here and (whole or current is not core):
            missing[current.co_id] = current
        optional.extend(store.core(author) for author in current.deferred)
        (required if needed else optional).extend(map(store.core, current.header.needs()))
        if current.header.is_group:
            state = store.group_state(current.co_id)
            if isinstance(state, GroupState):
                optional.extend(store.core(parent) for parent in (*state.missing, *state.parents))
    return list(missing.values())


def _why_absent(core: Core, needed: Core) -> str:
    if needed is core:
        return "the sync server does not have it"
    is_owner = core.header is not None and core.header.owner == needed.co_id
    return f"its {'owner' if is_owner else 'source'} {needed.co_id} is not on the server"
