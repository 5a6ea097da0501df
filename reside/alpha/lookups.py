"""Look-ups: maps with computable names that point to entities (`reside.model.lookup`).

A look-up by id is also the reservation of the id: an id is free as long as the server has no such look-up. So no id is
used twice, even if a process crashes at any point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reside.model.lookup import CLAIMANT, TARGET, TARGETS, VALUE, pointing_to, target_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.alpha.data import AlphaData
    from reside.jazz import CoList, CoMap


@dataclass(frozen=True)
class Reservation:
    """A request for an id.

    Attributes:
        holder: what distinguishes this reservation from all others of its kind, e.g. the id of a load request's spec.
        counter: member of Alpha's root map that stores where free ids begin; a hint, the look-up decides.
        first: the lowest id to assign.
        member: the member of the look-up that has the holder; `TARGET` if the holder is the id of the entity's map.
    """

    holder: str
    counter: str
    first: int = 1
    member: str = CLAIMANT


async def find(data: AlphaData, name: str) -> str | None:
    """Return the id of the value that the look-up `name` points to; None if it does not exist."""
    found = await data.node.find_unique_map(data.public.id, name)
    return None if found is None else target_of(found)


async def find_all(data: AlphaData, name: str) -> list[str]:
    """Return the ids of the values that the look-up `name` lists, those with the lowest numbers first."""
    found = await data.node.find_unique_map(data.public.id, name)
    return [] if found is None else listed(found)


async def is_listed(data: AlphaData, name: str, target: str) -> bool:
    """Return whether the look-up `name` lists `target`, without reading the others."""
    found = await data.node.find_unique_map(data.public.id, name)
    return found is not None and _lists(found, target)


async def set_target(data: AlphaData, name: str, target: str) -> None:
    """Make the look-up `name` point to `target`."""
    lookup = await data.node.unique_map(data.public, name, pointing_to(target))
    if lookup.get(TARGET) != target:
        lookup.update(pointing_to(target))


async def clear(data: AlphaData, name: str, target: str) -> None:
    """Make the look-up `name` point to nothing, if it points to `target`. An id stays reserved."""
    lookup = await data.node.find_unique_map(data.public.id, name)
    if lookup is not None and target_of(lookup) == target:
        lookup.update({}, unset=[member for member in (TARGET, VALUE) if member in lookup])


async def make_list(data: AlphaData, name: str) -> None:
    """Create the look-up `name` without values unless it exists, so that readers can watch it."""
    await data.node.unique_map(data.public, name)


async def add_target(data: AlphaData, name: str, target: str, number: int) -> None:
    """Add `target`, the value with this number, to those that the look-up `name` lists, unless it is listed."""
    lookup = await data.node.unique_map(data.public, name)
    _convert(lookup)
    if target not in lookup:
        lookup.set(target, number)


async def remove_target(data: AlphaData, name: str, target: str) -> None:
    """Remove `target` from the values that the look-up `name` lists."""
    lookup = await data.node.find_unique_map(data.public.id, name)
    if lookup is not None:
        _convert(lookup)
        if target in lookup:
            lookup.delete(target)


def listed(lookup: CoMap) -> list[str]:
    """Return the ids of the values that a look-up lists, those with the lowest numbers first.

    Each is a member, id → number. A look-up of an earlier release has the ids in one list, which the first change
    replaces by members: so a change writes one entry, whatever the look-up lists.
    """
    members = lookup.as_dict()
    numbers = {target: number for target, number in members.items() if type(number) is int}
    return [*_earlier(lookup), *sorted(numbers, key=lambda target: numbers[target])]


def _lists(lookup: CoMap, target: str) -> bool:
    return target in lookup or target in _earlier(lookup)


def _earlier(lookup: CoMap) -> list[str]:
    targets = lookup.get(TARGETS)
    return [target for target in targets if isinstance(target, str)] if isinstance(targets, list) else []


def _convert(lookup: CoMap) -> None:
    if TARGETS in lookup:
        lookup.update(dict.fromkeys(_earlier(lookup), 0), unset=[TARGETS])


async def reserve_id(data: AlphaData, by_id: Callable[[int], str], reservation: Reservation) -> int:
    """Return the id that the holder has reserved, or reserve the lowest free one.

    The caller holds Alpha's lock. Until the id is confirmed, the same holder gets the same id again.
    """
    hint = data.root.get(reservation.counter)
    number = max(reservation.first, hint if isinstance(hint, int) else reservation.first)
    holder = reservation.holder
    members = pointing_to(holder) if reservation.member == TARGET else {reservation.member: holder}
    while True:
        lookup = await data.node.unique_map(data.public, by_id(number), members)
        if lookup.get(reservation.member) == holder:
            return number
        number += 1


def confirm_id(data: AlphaData, reservation: Reservation, number: int) -> None:
    """Store that a reserved id is in use, so that the next reservation starts after it."""
    hint = data.root.get(reservation.counter)
    if not isinstance(hint, int) or hint <= number:
        data.root.set(reservation.counter, number + 1)


def add_once(values: CoList, value: str) -> None:
    """Append `value` to a list unless it contains it."""
    if value not in values:
        values.append(value)


def remove_once(values: CoList, value: str) -> None:
    """Remove `value` from a list, if it contains it."""
    items = values.as_list()
    if value in items:
        values.remove(items.index(value))
