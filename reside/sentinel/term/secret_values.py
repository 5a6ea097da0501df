"""Resolve secret references: from Jazz, else from the vault, else from the live Secret.

Invariant: a value from Jazz is used only if the owner of the stack wrote it. Otherwise an account that may declare
Secrets could copy any value that the Sentinel can read into a Secret of its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from reside.common.texts import is_utf8
from reside.jazz import JazzError, ValueDeleted
from reside.model.sentinel_data import REFERENCED_VALUE
from reside.sentinel.objects.secrets import all_references, filled, live_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.jazz import CoMap, Node
    from reside.model.stacks import DesiredStack, K8sObject
    from reside.sentinel.guard.guard import Guard
    from reside.sentinel.objects.secrets import Reference

_log = structlog.get_logger(__name__)

_LOAD_S: Final = 5.0
"""Deadline in seconds for a value to arrive from Jazz."""
PLACEHOLDER: Final = "not-yet-known"


async def resolve(node: Node, guard: Guard, stack: DesiredStack) -> tuple[tuple[K8sObject, ...], dict[str, CoMap]]:
    """Return the stack's objects with all secret values, and the maps of those values; store the values in the vault.

    Raises:
        NotReady: a value is in none of the sources.
        InvalidInput: an annotation is malformed.
    """
    found, sources = await _look_up(node, stack)

    def value_of(reference: Reference) -> str | None:
        return _known(found, guard, stack.owner, reference)

    objects = tuple(filled(obj, value_of) for obj in stack.objects)
    values = {(stack.owner, each.target): value_of(each) for each in all_references(stack.objects)}
    await guard.vault.put_aside({key: value for key, value in values.items() if value is not None})
    return objects, sources


async def resolve_for_preview(node: Node, guard: Guard, stack: DesiredStack) -> tuple[K8sObject, ...]:
    """Return the stack's objects with placeholders for unknown secret values; store nothing."""
    found, _ = await _look_up(node, stack)

    def value_of(reference: Reference) -> str:
        known = _known(found, guard, stack.owner, reference)
        return known if known is not None else PLACEHOLDER

    return tuple(filled(obj, value_of) for obj in stack.objects)


def _known(found: Mapping[str, str], guard: Guard, owner: str, reference: Reference) -> str | None:
    """Return the value of a reference. An empty value from Jazz is a value, too."""
    value = found.get(reference.target)
    if value is None:
        value = guard.vault.get(owner, reference.target)
    return value if value is not None else live_value(guard.cache.get(reference.object), reference.key)


async def _look_up(node: Node, stack: DesiredStack) -> tuple[dict[str, str], dict[str, CoMap]]:
    """Return the values that Jazz has now and the maps that could be loaded, both by map id."""
    targets = sorted({reference.target for reference in all_references(stack.objects)})
    sources = await asyncio.gather(*(_load(node, target) for target in targets))
    maps = {target: source for target, source in zip(targets, sources, strict=True) if source is not None}
    values: dict[str, str] = {}
    for target, source in maps.items():
        edit = source.edit(REFERENCED_VALUE)
        if edit is None or edit.deleted:
            continue
        if edit.by != stack.owner:
            _log.warning("ignoring secret value written by another account", of=stack.name, map=target, by=edit.by)
        elif not isinstance(edit.value, str) or not is_utf8(edit.value):
            _log.warning("ignoring secret value that is not text in UTF-8", of=stack.name, map=target)
        else:
            values[target] = edit.value
    return values, maps


async def _load(node: Node, target: str) -> CoMap | None:
    try:
        return await node.load_map(target, timeout=_LOAD_S)
    except ValueDeleted:
        return None  # Alpha deletes a value from Jazz after the vault has stored it
    except JazzError as error:
        _log.warning("secret value can't be read from Jazz", map=target, error=str(error))
        return None
