"""The order of dependencies: the accounts and groups of a value are requested before the value."""

from collections.abc import Iterator

from reside.jazz.ids import author_of, is_account_id
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store


def by_dependency(store: Store) -> list[Core]:
    """Return all values, each after the accounts and groups that it needs."""
    ordered: dict[str, Core] = {}
    opened: set[str] = set()
    stack = list(reversed(store.cores.values()))
    while stack:
        core = stack.pop()
        if core.co_id in ordered:
            continue
        if core.co_id in opened:
            ordered[core.co_id] = core
            continue
        opened.add(core.co_id)
        stack.append(core)
        stack.extend(store.core(needed) for needed in needs(core) if needed not in opened)
    return list(ordered.values())


def needs(core: Core) -> Iterator[str]:
    """Return the accounts and groups that a value needs: its authors, its owner, and the parents of a group."""
    needed = [author_of(session) for session in core.sessions]
    if core.header is not None and core.header.owner is not None:
        needed.append(core.header.owner)
    if core.group_state is not None:
        needed.extend(core.group_state.parents)
    return (co_id for co_id in needed if is_account_id(co_id))
