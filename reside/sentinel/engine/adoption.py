"""Refuses to adopt existing objects that are not ours.

The provider's create is an upsert and would take over any object silently. So before an apply each desired object is
looked up. A live object without our managed-by label is refused, with the name of its manager. An object with our
label, which exists after a lost state or an earlier bootstrap, is adopted.
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
"""Looks up a desired object: returns the live object with its `managedFields`, or None if it does not exist."""


@dataclass(frozen=True)
class ForeignObject:
    """A live object that another manager owns.

    Attributes:
        object: `Kind/name`.
        manager: the name of the manager.
    """

    object: str
    manager: str

    def __str__(self) -> str:
        return (
            f"{self.object} exists and is managed by {self.manager}: delete it, "
            f"or give it the label {MANAGED_BY_LABEL}: {FIELD_MANAGER} to let the Sentinel adopt it"
        )


def foreign(desired: K8sObject, live: Live | None) -> ForeignObject | None:
    """Return why `live` must not be adopted, or None if it does not exist or is ours."""
    if live is None:
        return None
    metadata = live.get("metadata") or {}
    if (metadata.get("labels") or {}).get(MANAGED_BY_LABEL) == FIELD_MANAGER:
        return None
    return ForeignObject(object_key(desired), manager_of(live))


def manager_of(live: Live) -> str:
    """Return the manager of a live object: the last writer of anything but its status, or its managed-by label."""
    metadata = live.get("metadata") or {}
    entries = [entry for entry in metadata.get("managedFields") or () if entry.get("subresource") != "status"]
    named = [entry for entry in sorted(entries, key=lambda entry: str(entry.get("time", ""))) if entry.get("manager")]
    if named:
        return str(named[-1]["manager"])
    return str((metadata.get("labels") or {}).get(MANAGED_BY_LABEL) or "an unknown manager")


async def check_adoption(objects: Iterable[K8sObject], get_live: GetLive) -> list[ForeignObject]:
    """Look up all objects concurrently, and return those that must not be adopted, in the order of the objects."""
    desired = list(objects)
    found: list[Live | None] = [None] * len(desired)

    async def look_up(index: int) -> None:
        found[index] = await get_live(desired[index])

    async with anyio.create_task_group() as group:
        for index in range(len(desired)):
            group.start_soon(look_up, index)
    refused = (foreign(each, live) for each, live in zip(desired, found, strict=True))
    return [each for each in refused if each is not None]
