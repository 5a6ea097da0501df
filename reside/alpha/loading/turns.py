"""Turns: of the approved loads of one replica, only one is carried out at a time.

A preview shows what a load changes in the current state. While another approved load of the same replica is not carried
out, this state is about to change, so no other one is previewed or approved. Loads of an exclusive identity that has no
replica yet share a turn, too, because the first of them creates the replica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import lookups, records
from reside.model import lookup

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.model.entities import ApproveRequest, Replica


def turn_of(approved: ApproveRequest, existing: Replica | None) -> str | None:
    """Return the name of the look-up for the turn of a load; None if it shares none, as a further instance.

    Args:
        approved: what is resolved for the load.
        existing: the replica that it updates.
    """
    if existing is not None:
        return lookup.load_turn_of_replica(existing.id)
    return lookup.load_turn_of_identity(approved.identity) if approved.info.exclusive else None


async def holder_of(data: AlphaData, turn: str | None) -> int | None:
    """Return the id of the approved request that is not carried out and has the turn; None if there is none."""
    request = None if turn is None else await records.request_at(data, await lookups.find(data, turn))
    if request is None:
        return None
    return request.id if request.status == "approved" and request.version is None else None


async def take(data: AlphaData, turn: str | None, request: str) -> None:
    """Give the turn to the request with this map id. The caller holds Alpha's lock, and then approves the request."""
    if turn is not None:
        await lookups.set_target(data, turn, request)
