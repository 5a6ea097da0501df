"""Names of new instances: the first free one. Names of instances and of open load requests are taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import lookups, records
from reside.model import lookup
from reside.model.names import candidate_names

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData


async def free_name(data: AlphaData, preferred: str, request: int) -> str:
    """Return the first free name for the instance that a request creates. The caller holds Alpha's lock.

    Raises:
        InvalidName: the preferred name is invalid.
    """
    for name in candidate_names(preferred):
        if not await is_taken(data, name, request):
            return name
    raise AssertionError("the candidates never end")


async def is_taken(data: AlphaData, name: str, request: int) -> bool:
    """Return whether an instance has the name, or an open load request other than `request` holds it."""
    if await lookups.find(data, lookup.replica_by_name(name)) is not None:
        return True
    holder = await records.request_at(data, await lookups.find(data, lookup.load_request_by_name(name)))
    if holder is None:
        return False
    held = holder.approve_request
    return holder.id != request and holder.is_open and held is not None and held.name == name


async def hold(data: AlphaData, name: str, request: str) -> None:
    """Let a request, whose map has the id `request`, hold a name. The caller holds Alpha's lock."""
    await lookups.set_target(data, lookup.load_request_by_name(name), request)
