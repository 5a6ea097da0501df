"""The maps with Alpha's desired stacks, whose history is dropped from time to time.

The unique map `stack.<name>` points (member `target`) to a map with the present stack. All that is ever written to a
map stays in its log, so after some changes the stack gets a new map, and the one before is deleted; the sync server
then erases its content. In data of an earlier release the unique map has the stack itself, until its next change.

Invariant: the member `replaced` names the maps before, until they are deleted, which happens only after the Sentinel's
`desired` names the present one. So the next pass deletes what a process that died did not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reside.common.traceparent import TRACEPARENT
from reside.common.tracing import current
from reside.jazz import ValueDeleted
from reside.model.lookup import TARGET
from reside.model.sentinel_data import stack_map
from reside.model.stacks import OBJECTS, DesiredStack

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap

REPLACE_AFTER: Final = 8
"""Changes of a stack after which it gets a new map. A load makes three or four."""
_REPLACED: Final = "replaced"


async def read(data: AlphaData, stack: str) -> DesiredStack | None:
    """Return the desired stack of this name; None if Alpha has not written it.

    Raises:
        InvalidInput: it is malformed.
    """
    pointer = await data.node.find_unique_map(data.stacks_group.id, stack_map(stack))
    found = None if pointer is None else await _present(data, pointer)
    return None if found is None else DesiredStack.parse(found.as_dict())


async def write(data: AlphaData, stack: DesiredStack) -> CoMap:
    """Write a stack, unless it is equal to the present one, and return its map.

    A stack that has changed gets the trace of this change, for the Sentinel's spans.
    """
    members = replace(stack, traceparent=current()).document()
    pointer = await data.node.unique_map(data.stacks_group, stack_map(stack.name))
    found = await _present(data, pointer)
    if found is None or found is pointer or found.transaction_count >= REPLACE_AFTER:
        if found is not None and _is_equal(found, stack):
            return found
        made = data.stacks_group.create_map(members)
        before = [] if found is None or found is pointer else [found.id]
        members = {TARGET: made.id, **({_REPLACED: [*_replaced(pointer), *before]} if before else {})}
        pointer.update(members, unset=[key for key in pointer if key not in (TARGET, _REPLACED)])
        return made
    if not _is_equal(found, stack):
        found.update(members, unset=() if TRACEPARENT in members else (TRACEPARENT,))
    return found


async def erase_replaced(data: AlphaData, stack: str) -> None:
    """Delete the maps before the present one. The Sentinel's `desired` names the present one."""
    pointer = await data.node.find_unique_map(data.stacks_group.id, stack_map(stack))
    if pointer is None or not _replaced(pointer):
        return
    for co_id in _replaced(pointer):
        await _destroy(data, co_id)
    pointer.delete(_REPLACED)
    await data.node.flush()


async def erase(data: AlphaData, stack: str) -> None:
    """Delete the content of a stack that is no longer declared. Another replica of this name starts with none."""
    pointer = await data.node.find_unique_map(data.stacks_group.id, stack_map(stack))
    if pointer is None:
        return
    for co_id in [*_replaced(pointer), *([pointer[TARGET]] if TARGET in pointer else [])]:
        await _destroy(data, str(co_id))
    for key in list(pointer):
        pointer.delete(key)


async def _present(data: AlphaData, pointer: CoMap) -> CoMap | None:
    target = pointer.get(TARGET)
    if not isinstance(target, str):
        return pointer if OBJECTS in pointer else None
    try:
        return await data.node.load_map(target)
    except ValueDeleted:  # it was replaced while it was loaded, or its stack removed
        return None if pointer.get(TARGET) == target else await _present(data, pointer)


def _is_equal(found: CoMap, stack: DesiredStack) -> bool:
    members = stack.document()
    return all(found.get(key) == members[key] for key in ("revision", OBJECTS))


def _replaced(pointer: CoMap) -> list[str]:
    named = pointer.get(_REPLACED)
    return list(named) if isinstance(named, list) else []


async def _destroy(data: AlphaData, co_id: str) -> None:
    try:
        (await data.node.load_map(co_id)).destroy()
    except ValueDeleted:
        return
