"""Resolve the open requirements of a replica again, when a provider appears, goes, or is enabled or disabled.

A requirement is open if it is `multiple` or `optional` and no approver has chosen its replicas. Other replicas than now
would get other grants, so they need an approval: Alpha creates a load request for the image of the current version. Its
value has a name that follows from the result, so each result is requested once; if it is rejected, it is not requested
again until providers change to yet another result.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from typing import TYPE_CHECKING

from reside.alpha import contracts, records
from reside.alpha.loading import turns
from reside.alpha.loading.create import create_request
from reside.alpha.records import RequestGone
from reside.model import lookup
from reside.model.entities import LoadRequestSpec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from reside.alpha.state import Alpha
    from reside.jazz import CoMap
    from reside.model.entities import Replica, ReplicaChoice, ReplicaVersion, Requirement


def open_requirements(replica: Replica) -> dict[str, Requirement]:
    """Return the open requirements of the current version of an enabled replica, by key."""
    if replica.current_version is None or not replica.management.enabled:
        return {}
    required = replica.version(replica.current_version).requirements
    return {key: r for key, r in required.items() if (r.multiple or r.optional) and not r.chosen}


def resolved_again(requirement: Requirement, providers: Sequence[ReplicaChoice]) -> tuple[int, ...]:
    """Return the ids of the replicas that an open requirement would have now: all, or the one that it has, or one."""
    offered = [provider.id for provider in providers]
    if requirement.multiple:
        return tuple(sorted(offered))
    kept = [replica.id for replica in requirement.replicas if replica.id in offered]
    return tuple((kept or offered)[:1])


async def look_ups(alpha: Alpha, replica: Replica) -> list[CoMap]:
    """Return the look-ups that list the providers of the open requirements: they change when a provider does."""
    identities = {requirement.contract for requirement in open_requirements(replica).values()}
    found = [await _look_up(alpha, identity) for identity in sorted(identities)]
    return [value for value in found if value is not None]


async def _look_up(alpha: Alpha, identity: str) -> CoMap | None:
    number = await contracts.contract_id(alpha.data, identity)
    if number is None:
        return None
    return await alpha.node.find_unique_map(alpha.data.public.id, lookup.replicas_by_contract(number))


async def request_again(alpha: Alpha, replica: Replica) -> None:
    """Create a load request if the open requirements would have other replicas now; do nothing if it was created."""
    changed = {key: ids async for key, ids in _changed(alpha, replica)}
    if not changed or replica.current_version is None or replica.canary is not None:
        return
    version = replica.version(replica.current_version)
    if await turns.holder_of(alpha.data, lookup.load_turn_of_replica(replica.id)) is not None:
        return  # the pass after that load looks again
    spec = LoadRequestSpec(image=f"{replica.identity}@{version.digest}", replica_id=replica.id, health=version.health)
    value = await alpha.node.unique_map(alpha.data.requests_group, _name(replica, version, changed), spec.document())
    await alpha.node.flush()
    with suppress(RequestGone):  # it was refused long ago
        await create_request(alpha, value.id, alpha.account)


async def _changed(alpha: Alpha, replica: Replica) -> AsyncIterator[tuple[str, tuple[int, ...]]]:
    for key, requirement in open_requirements(replica).items():
        number = await contracts.contract_id(alpha.data, requirement.contract)
        providers = () if number is None else await records.providers_of(alpha.data, number)
        ids = resolved_again(requirement, providers)
        if ids != tuple(sorted(choice.id for choice in requirement.replicas)):
            yield key, ids


def _name(replica: Replica, version: ReplicaVersion, changed: dict[str, tuple[int, ...]]) -> str:
    content = json.dumps(changed, sort_keys=True).encode()
    return f"resolve.{replica.id}.{version.digest}.{hashlib.sha256(content).hexdigest()}"
