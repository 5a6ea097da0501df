"""Where the values of secret references come from: Jazz, else the vault, else the live Secret.

Invariant: a value out of Jazz counts only if the account that declares the stack wrote it. Otherwise anyone who may
declare a Secret could have a value filled in that only the Sentinel can read.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from reside.jazz import JazzError
from reside.model.sentinel_data import REFERENCED_VALUE
from reside.sentinel.objects.secrets import all_references, filled, live_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reside.jazz import CoMap, Node
    from reside.model.stacks import DesiredStack, K8sObject
    from reside.sentinel.guard.guard import Guard
    from reside.sentinel.objects.secrets import Reference

_log = structlog.get_logger(__name__)

_WITHIN_S: Final = 5.0
PLACEHOLDER: Final = "not-yet-known"


async def resolve(node: Node, guard: Guard, stack: DesiredStack) -> tuple[tuple[K8sObject, ...], dict[str, CoMap]]:
    """The stack's objects with all values, which the vault keeps from now on, and the maps that they came from.

    Raises:
        NotReady: a value is nowhere to be found.
        InvalidInput: an annotation is malformed.
    """
    found, sources = await _look_up(node, stack)

    def value_of(reference: Reference) -> str | None:
        return _known(found, guard, stack.owner, reference)

    objects = tuple(filled(manifest, value_of) for manifest in stack.objects)
    for reference in all_references(stack.objects):
        value = value_of(reference)
        if value is not None:
            guard.vault.put(stack.owner, reference.target, value)
    return objects, sources


async def resolve_loosely(node: Node, guard: Guard, stack: DesiredStack) -> tuple[K8sObject, ...]:
    """The stack's objects for a preview: what is not known yet is a placeholder, and nothing is kept."""
    found, _ = await _look_up(node, stack)

    def value_of(reference: Reference) -> str:
        known = _known(found, guard, stack.owner, reference)
        return known if known is not None else PLACEHOLDER

    return tuple(filled(manifest, value_of) for manifest in stack.objects)


def _known(found: Mapping[str, str], guard: Guard, owner: str, reference: Reference) -> str | None:
    """The value of a reference; one that Jazz has counts also if it is empty."""
    value = found.get(reference.target)
    if value is None:
        value = guard.vault.get(owner, reference.target)
    return value if value is not None else live_value(guard.cache.get(reference.object), reference.key)


async def _look_up(node: Node, stack: DesiredStack) -> tuple[dict[str, str], dict[str, CoMap]]:
    """Values by map id as far as Jazz has them now, and the maps."""
    targets = sorted({reference.target for reference in all_references(stack.objects)})
    sources = await asyncio.gather(*(_load(node, target) for target in targets))
    maps = {target: source for target, source in zip(targets, sources, strict=True) if source is not None}
    values: dict[str, str] = {}
    for target, source in maps.items():
        edit = source.edit(REFERENCED_VALUE)
        if edit is None or edit.deleted:
            continue
        if edit.by != stack.owner:
            _log.warning("secret value of another account ignored", of=stack.name, map=target, by=edit.by)
        elif isinstance(edit.value, str):
            values[target] = edit.value
    return values, maps


async def _load(node: Node, target: str) -> CoMap | None:
    try:
        return await node.load_map(target, timeout=_WITHIN_S)
    except JazzError as error:
        _log.warning("secret value can't be read from Jazz", map=target, error=str(error))
        return None
