"""The order of dependencies: the accounts and groups of a value, and a branch's source, are requested before it."""

from collections.abc import Iterator

from reside.jazz.ids import author_of, is_account_id
from reside.jazz.memory.covalue import Core
from reside.jazz.memory.store import Store


def by_dependency(store: Store) -> list[Core]:
    """Return all values, each after the values that it needs."""
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
    """Return the values that a value needs: its authors, its owner, the parents of a group, the source of a branch."""
    needed = [author_of(session) for session in core.sessions]
    if core.header is not None:
        needed += core.header.needs()
    if core.group_state is not None:
        needed.extend(core.group_state.parents)
    return (co_id for co_id in needed if is_account_id(co_id))
