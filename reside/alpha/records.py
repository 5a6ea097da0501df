"""Entities as they stand in Jazz: the maps to write, and the value read from them (validated here, at the edge)."""

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
    """A replica: its map, its management map, its versions' maps by id, and the value they make."""

    map: CoMap
    management: CoMap
    versions: dict[int, CoMap]
    value: Replica


@dataclass(frozen=True)
class RequestRecord:
    """A load request: its map and the value it makes."""

    map: CoMap
    value: LoadRequest


def parse(kind: type[_E], members: dict[str, Any], where: str) -> _E:
    """An entity out of a map's members.

    Raises:
        InvalidInput: they make none; the message names the map and the members.
    """
    try:
        return kind.model_validate(members)
    except ValidationError as error:
        raise InvalidInput(f"{kind.__name__} {where} is malformed: {describe_faults(error, 'map')}") from None


async def read_replica(data: AlphaData, co_id: str) -> ReplicaRecord:
    """The replica whose map has this id."""
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
    """The replica with this id."""
    target = await lookups.find(data, lookup.replica_by_id(number))
    return None if target is None else await read_replica(data, target)


async def all_replicas(data: AlphaData) -> list[ReplicaRecord]:
    """Every replica, in the order of its appearance."""
    return [await read_replica(data, co_id) for co_id in data.replicas.as_list()]


async def replicas_of(data: AlphaData, identity: str) -> list[ReplicaRecord]:
    """The replicas made from images of this identity, by id."""
    targets = await lookups.find_all(data, lookup.replicas_by_identity(identity))
    return sorted([await read_replica(data, target) for target in targets], key=lambda r: r.value.id)


async def providers_of(data: AlphaData, contract: int) -> tuple[ReplicaChoice, ...]:
    """The enabled replicas whose current version implements a contract, by id."""
    targets = await lookups.find_all(data, lookup.replicas_by_contract(contract))
    found = [(await read_replica(data, target)).value for target in targets]
    return tuple(
        ReplicaChoice(id=replica.id, name=replica.name, account=replica.account)
        for replica in sorted(found, key=lambda r: r.id)
        if replica.management.enabled
    )


async def read_request(data: AlphaData, co_id: str) -> RequestRecord:
    """The load request whose map has this id."""
    found = await data.node.load_map(co_id)
    return RequestRecord(found, parse(LoadRequest, found.as_dict(), co_id))


async def find_request(data: AlphaData, number: int) -> RequestRecord:
    """The load request with this id.

    Raises:
        InvalidInput: there is none.
    """
    target = await lookups.find(data, lookup.load_request_by_id(number))
    if target is None:
        raise InvalidInput(f"there is no load request {number}")
    return await read_request(data, target)


async def all_requests(data: AlphaData) -> list[RequestRecord]:
    """Every load request, oldest first."""
    return [await read_request(data, co_id) for co_id in data.requests.as_list()]
