"""Entities in Jazz: the maps to write, and the values that are read from them and validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from reside.alpha import lookups
from reside.alpha.management import read_management
from reside.common.validation import describe_faults
from reside.model import lookup
from reside.model.entities import LoadRequest, Replica, ReplicaChoice
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap
    from reside.model.entities import Entity

    _E = TypeVar("_E", bound=Entity)


@dataclass(frozen=True)
class ReplicaRecord:
    """A replica: its map, its management map, the maps of its versions by id, and the value that they represent."""

    map: CoMap
    management: CoMap
    versions: dict[int, CoMap]
    value: Replica


@dataclass(frozen=True)
class RequestRecord:
    """A load request: its map and the value that it represents."""

    map: CoMap
    value: LoadRequest


def parse(kind: type[_E], members: dict[str, Any], where: str) -> _E:
    """Return the entity that the members of a map represent.

    Raises:
        InvalidInput: they are malformed; the message names the map and the invalid members.
    """
    try:
        return kind.model_validate(members)
    except ValidationError as error:
        raise InvalidInput(f"{kind.__name__} {where} is malformed: {describe_faults(error, 'map')}") from None


async def read_replica(data: AlphaData, co_id: str) -> ReplicaRecord:
    """Read the replica whose map has this id."""
    found = await data.node.load_map(co_id)
    members = found.as_dict()
    management = await data.node.load_map(members["management"])
    listed = await data.node.load_list(members["versions"])
    maps = [await data.node.load_map(version) for version in listed.as_list()]
    decided = read_management(management, data.may_manage, data.node.now_ms())
    value = parse(
        Replica,
        members | {"management": decided.document(), "versions": [version.as_dict() for version in maps]},
        co_id,
    )
    return ReplicaRecord(found, management, {version["id"]: version for version in maps}, value)


async def find_replica(data: AlphaData, number: int) -> ReplicaRecord | None:
    """Read the replica with this id; None if it does not exist."""
    target = await lookups.find(data, lookup.replica_by_id(number))
    return None if target is None else await read_replica(data, target)


async def all_replicas(data: AlphaData) -> list[ReplicaRecord]:
    """Read all replicas, in the order of their creation."""
    return [await read_replica(data, co_id) for co_id in data.replicas.as_list()]


async def replicas_of(data: AlphaData, identity: str) -> list[ReplicaRecord]:
    """Read the replicas whose images have this identity, sorted by id."""
    targets = await lookups.find_all(data, lookup.replicas_by_identity(identity))
    return sorted([await read_replica(data, target) for target in targets], key=lambda r: r.value.id)


async def providers_of(data: AlphaData, contract: int) -> tuple[ReplicaChoice, ...]:
    """Read the enabled replicas whose current version implements a contract, sorted by id."""
    targets = await lookups.find_all(data, lookup.replicas_by_contract(contract))
    found = [(await read_replica(data, target)).value for target in targets]
    return tuple(
        ReplicaChoice(id=replica.id, name=replica.name, account=replica.account)
        for replica in sorted(found, key=lambda r: r.id)
        if replica.management.enabled and replica.deletion is None
    )


async def read_request(data: AlphaData, co_id: str) -> RequestRecord:
    """Read the load request whose map has this id."""
    found = await data.node.load_map(co_id)
    return RequestRecord(found, parse(LoadRequest, found.as_dict(), co_id))


async def find_request(data: AlphaData, number: int) -> RequestRecord:
    """Read the load request with this id.

    Raises:
        InvalidInput: it does not exist.
    """
    target = await lookups.find(data, lookup.load_request_by_id(number))
    if target is None:
        raise InvalidInput(f"load request {number} does not exist")
    return await read_request(data, target)


async def all_requests(data: AlphaData) -> list[RequestRecord]:
    """Read all load requests, the oldest first."""
    return [await read_request(data, co_id) for co_id in data.requests.as_list()]
