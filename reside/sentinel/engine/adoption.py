"""Refuses to adopt existing objects that are not ours, or not of this stack.

The provider's create is an upsert and would take over any object silently. So each new object is looked up before an
apply, and the create repeats what was found as a precondition: another program may be faster. The cache tells which
objects have our label; that no other object has the name is left to the precondition, and the API server is asked if
the create is refused. A live object without our managed-by label is refused, with the name of its manager. An object
with our label, which exists after a lost state or an earlier bootstrap, is adopted, unless its label `reside.io/stack`
names a stack of another owner. So it stays with its stack even if the volume, which knows that, is lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import anyio

from reside.model.constants import FIELD_MANAGER, MANAGED_BY_LABEL, STACK_LABEL
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
        stack: the stack that its label names, if it is managed by us and belongs to that one.
    """

    object: str
    manager: str
    stack: str | None = None

    def __str__(self) -> str:
        if self.stack is not None:
            return (
                f"{self.object} exists and belongs to the stack {self.stack}, by its label {STACK_LABEL}: use another "
                "name, or delete the object"
            )
        return (
            f"{self.object} exists and is managed by {self.manager}: delete it, "
            f"or give it the label {MANAGED_BY_LABEL}: {FIELD_MANAGER} to let the Sentinel adopt it"
        )


def foreign(desired: K8sObject, live: Live | None, is_own: Callable[[str], bool]) -> ForeignObject | None:
    """Return why `live` must not be adopted, or None if it does not exist or is ours.

    Args:
        desired: the desired object.
        live: the live object of its name.
        is_own: returns whether objects with the label of this stack may be adopted.
    """
    if live is None:
        return None
    labels = (live.get("metadata") or {}).get("labels") or {}
    if labels.get(MANAGED_BY_LABEL) != FIELD_MANAGER:
        return ForeignObject(object_key(desired), manager_of(live))
    stack = labels.get(STACK_LABEL)
    return None if stack is None or is_own(stack) else ForeignObject(object_key(desired), FIELD_MANAGER, stack)


def manager_of(live: Live) -> str:
    """Return the manager of a live object: the last writer of anything but its status, or its managed-by label."""
    metadata = live.get("metadata") or {}
    entries = [entry for entry in metadata.get("managedFields") or () if entry.get("subresource") != "status"]
    named = [entry for entry in sorted(entries, key=lambda entry: str(entry.get("time", ""))) if entry.get("manager")]
    if named:
        return str(named[-1]["manager"])
    return str((metadata.get("labels") or {}).get(MANAGED_BY_LABEL) or "an unknown manager")


ABSENT: Final = {"resourceVersion": "1"}
"""Metadata with which a server-side apply creates an object, and fails if there is one: no object has this version."""


@dataclass(frozen=True)
class Adoption:
    """What a look at the live objects has found.

    Attributes:
        refused: the objects that must not be adopted, in the order of the desired ones.
        expected: `Kind/name` → metadata that a server-side apply must contain, so that it fails if the object has been
            created, or deleted and recreated, in the meantime.
    """

    refused: tuple[ForeignObject, ...]
    expected: dict[str, dict[str, str]]


async def check_adoption(objects: Iterable[K8sObject], get_live: GetLive, is_own: Callable[[str], bool]) -> Adoption:
    """Look up all objects concurrently."""
    desired = list(objects)
    found: list[Live | None] = [None] * len(desired)

    async def look_up(index: int) -> None:
        found[index] = await get_live(desired[index])

    async with anyio.create_task_group() as group:
        for index in range(len(desired)):
            group.start_soon(look_up, index)
    pairs = list(zip(desired, found, strict=True))
    refused = (foreign(each, live, is_own) for each, live in pairs)
    expected = {object_key(each): _identity(live) for each, live in pairs}
    return Adoption(tuple(each for each in refused if each is not None), expected)


def _identity(live: Live | None) -> dict[str, str]:
    uid = ((live or {}).get("metadata") or {}).get("uid")
    return dict(ABSENT) if live is None else {"uid": str(uid)} if uid else {}
