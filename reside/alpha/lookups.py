"""Look-ups: maps with names that everybody can compute, which point to entities (`reside.model.lookup`).

A look-up by id is also the claim on that id: an id is free as long as the server has no such look-up. So an id is never
given twice, whatever a process knew or did before it died.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reside.model.lookup import CLAIMANT, TARGET, TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.alpha.data import AlphaData
    from reside.jazz import CoList


@dataclass(frozen=True)
class Reservation:
    """Who wants an id, and where ids begin.

    Attributes:
        claimant: what tells this claim from all others of its kind, e.g. the id of a request value.
        counter: member of Alpha's root map that remembers where free ids begin; a hint, the look-up decides.
        first: the first id that may be given.
    """

    claimant: str
    counter: str
    first: int = 1


async def find(data: AlphaData, name: str) -> str | None:
    """Id of the value that the look-up `name` points to; None if there is none."""
    found = await data.node.find_unique_map(data.public.id, name)
    target = None if found is None else found.get(TARGET)
    return target if isinstance(target, str) else None


async def find_all(data: AlphaData, name: str) -> list[str]:
    """Ids of the values that the look-up `name` lists."""
    found = await data.node.find_unique_map(data.public.id, name)
    targets = None if found is None else found.get(TARGETS)
    return [target for target in targets if isinstance(target, str)] if isinstance(targets, list) else []


async def set_target(data: AlphaData, name: str, target: str) -> None:
    """Let the look-up `name` point to `target`."""
    lookup = await data.node.unique_map(data.public, name, {TARGET: target})
    if lookup.get(TARGET) != target:
        lookup.set(TARGET, target)


async def add_target(data: AlphaData, name: str, target: str) -> None:
    """Add `target` to what the look-up `name` lists, unless it is there."""
    lookup = await data.node.unique_map(data.public, name, {TARGETS: [target]})
    targets = lookup.get(TARGETS) or []
    if target not in targets:
        lookup.set(TARGETS, [*targets, target])


async def remove_target(data: AlphaData, name: str, target: str) -> None:
    """Take `target` off what the look-up `name` lists."""
    lookup = await data.node.find_unique_map(data.public.id, name)
    targets = (lookup.get(TARGETS) if lookup is not None else None) or []
    if lookup is not None and target in targets:
        lookup.set(TARGETS, [other for other in targets if other != target])


async def reserve_id(data: AlphaData, by_id: Callable[[int], str], reservation: Reservation) -> int:
    """The id that the claimant has, or the lowest free one, which is then the claimant's.

    The caller holds Alpha's lock. Claiming again finds the same id, as long as it was not settled.
    """
    hint = data.root.get(reservation.counter)
    number = max(reservation.first, hint if isinstance(hint, int) else reservation.first)
    while True:
        lookup = await data.node.unique_map(data.public, by_id(number), {CLAIMANT: reservation.claimant})
        if lookup.get(CLAIMANT) == reservation.claimant:
            return number
        number += 1


def confirm_id(data: AlphaData, reservation: Reservation, number: int) -> None:
    """Note that the claimed id is in use for good, so that the next claim begins behind it."""
    hint = data.root.get(reservation.counter)
    if not isinstance(hint, int) or hint <= number:
        data.root.set(reservation.counter, number + 1)


def add_once(values: CoList, value: str) -> None:
    """Append `value` to a list unless it is there."""
    if value not in values.as_list():
        values.append(value)
