"""Adoption is a decision: an existing object that is not ours is refused before the engine would silently take it.

The provider's create is an upsert. So before an apply each desired object is looked up, and one that lives without our
managed-by label is refused with its manager named; an object with our label (a state that was lost, a bootstrap
before) is ours and taken over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import anyio

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL
from reside.model.stacks import K8sObject, object_key

Live = Mapping[str, Any]
GetLive = Callable[[K8sObject], Awaitable[Live | None]]
"""Looks a desired object up in the cluster: the live object with its ``managedFields``, or None if there is none."""


@dataclass(frozen=True)
class ForeignObject:
    """A live object that somebody else manages."""

    object: str
    manager: str

    def __str__(self) -> str:
        return (
            f"{self.object} exists already and belongs to {self.manager}: delete it, "
            f"or give it the label {MANAGED_BY_LABEL}: {FIELD_MANAGER} to hand it over"
        )


def foreign(desired: K8sObject, live: Live | None) -> ForeignObject | None:
    """The refusal to take ``live`` over, or None if it is absent or ours."""
    if live is None:
        return None
    metadata = live.get("metadata") or {}
    if (metadata.get("labels") or {}).get(MANAGED_BY_LABEL) == FIELD_MANAGER:
        return None
    return ForeignObject(object_key(desired), manager_of(live))


def manager_of(live: Live) -> str:
    """Who manages a live object: the last writer of anything but its status, or its managed-by label."""
    metadata = live.get("metadata") or {}
    entries = [entry for entry in metadata.get("managedFields") or () if entry.get("subresource") != "status"]
    named = [entry for entry in sorted(entries, key=lambda entry: str(entry.get("time", ""))) if entry.get("manager")]
    if named:
        return str(named[-1]["manager"])
    return str((metadata.get("labels") or {}).get(MANAGED_BY_LABEL) or "an unknown manager")


async def check_adoption(objects: Iterable[K8sObject], get_live: GetLive) -> list[ForeignObject]:
    """Look all objects up at once and return the refusals, in the order of the objects."""
    wanted = list(objects)
    found: list[Live | None] = [None] * len(wanted)

    async def look(index: int) -> None:
        found[index] = await get_live(wanted[index])

    async with anyio.create_task_group() as group:
        for index in range(len(wanted)):
            group.start_soon(look, index)
    refusals = (foreign(desired, live) for desired, live in zip(wanted, found, strict=True))
    return [refusal for refusal in refusals if refusal is not None]
