"""Entities in Jazz: the maps to write, and the values that are read from them and validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from reside.alpha import lookups
from reside.alpha.active_versions import active_maps
from reside.alpha.management import read_management
from reside.common.validation import describe_faults
from reside.jazz import ValueDeleted, ValueNotFound
from reside.model import lookup
from reside.model.entities import LoadRequest, Replica, ReplicaChoice
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap
    from reside.model.entities import Entity

    _E = TypeVar("_E", bound=Entity)


class RequestGone(InvalidInput):
    """A load request is finished and not kept any more (`reside.alpha.finished_requests`)."""


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
    """Read the replica whose map has this id, with all its versions."""
    found = await data.node.load_map(co_id)
    listed = await data.node.load_list(str(found["versions"]))
    return await _read(data, found, listed.as_list())


async def read_active(data: AlphaData, co_id: str, *, also: Collection[int] = ()) -> ReplicaRecord:
    """Read the replica whose map has this id, with its active versions (`reside.alpha.active_versions`).

    Args:
        data: Alpha's data.
        co_id: the id of the map.
        also: ids of further versions to read, if they exist.
    """
    found = await data.node.load_map(co_id)
    active, wanted = active_maps(found.as_dict()), (found.get("currentVersion"), found.get("canary"))
    also = {*also, *(number for number in wanted if isinstance(number, int))}
    if active is None or any(number not in active for number in also):
        whole = await read_replica(data, co_id)
        return whole if active is None else _only(whole, {*active, *also})
    return await _read(data, found, list(active.values()))


async def read_outline(data: AlphaData, co_id: str) -> ReplicaRecord:
    """Read the replica whose map has this id, without its versions."""
    return await _read(data, await data.node.load_map(co_id), [])


async def find_replica(data: AlphaData, number: int) -> ReplicaRecord | None:
    """Read the replica with this id and all its versions; None if it does not exist."""
    target = await lookups.find(data, lookup.replica_by_id(number))
    return None if target is None else await read_replica(data, target)


async def find_active(data: AlphaData, number: int, *, also: Collection[int] = ()) -> ReplicaRecord | None:
    """Read the replica with this id and its active versions; None if it does not exist. See `read_active`."""
    target = await lookups.find(data, lookup.replica_by_id(number))
    return None if target is None else await read_active(data, target, also=also)


async def all_replicas(data: AlphaData) -> list[ReplicaRecord]:
    """Read all replicas with all their versions, in the order of their creation."""
    return [await read_replica(data, co_id) for co_id in data.replicas.as_list()]


async def replicas_of(data: AlphaData, identity: str) -> list[ReplicaRecord]:
    """Read the replicas whose images have this identity and their active versions, sorted by id."""
    targets = await lookups.find_all(data, lookup.replicas_by_identity(identity))
    return sorted([await read_active(data, target) for target in targets], key=lambda r: r.value.id)


async def first_of(data: AlphaData, identity: str) -> ReplicaRecord | None:
    """Read the replica with the lowest id among those whose images have this identity; None if there is none."""
    targets = await lookups.find_all(data, lookup.replicas_by_identity(identity))
    return await read_active(data, targets[0]) if targets else None


async def providers_of(data: AlphaData, contract: int) -> tuple[ReplicaChoice, ...]:
    """Read the enabled replicas whose current version implements a contract, sorted by id."""
    targets = await lookups.find_all(data, lookup.replicas_by_contract(contract))
    found = [(await read_outline(data, target)).value for target in targets]
    return tuple(
        ReplicaChoice(id=replica.id, name=replica.name, account=replica.account)
        for replica in sorted(found, key=lambda r: r.id)
        if replica.management.enabled and replica.deletion is None
    )


async def read_request(data: AlphaData, co_id: str) -> RequestRecord:
    """Read the load request whose map has this id.

    Raises:
        RequestGone: it is finished and not kept any more.
    """
    try:
        found = await data.node.load_map(co_id)
    except ValueDeleted:
        raise RequestGone(
            "the load request is finished and not kept any more: see the versions of its replica"
        ) from None
    return RequestRecord(found, parse(LoadRequest, found.as_dict(), co_id))


async def find_request(data: AlphaData, number: int) -> RequestRecord:
    """Read the load request with this id.

    Raises:
        RequestGone: it is finished and not kept any more.
        InvalidInput: it does not exist.
    """
    target = await lookups.find(data, lookup.load_request_by_id(number))
    try:
        if target is not None:
            return await read_request(data, target)
    except ValueNotFound:  # its id is reserved
        pass
    raise InvalidInput(f"load request {number} does not exist")


async def request_at(data: AlphaData, co_id: str | None) -> LoadRequest | None:
    """Return the load request whose map has this id; None if it is not kept any more, or if there is no id."""
    try:
        return None if co_id is None else (await read_request(data, co_id)).value
    except RequestGone:
        return None


async def _read(data: AlphaData, found: CoMap, versions: Iterable[Any]) -> ReplicaRecord:
    members = found.as_dict()
    management = await data.node.load_map(members["management"])
    maps = [await data.node.load_map(version) for version in versions]
    decided = read_management(management, data.may_manage, data.node.now_ms())
    value = parse(
        Replica,
        members | {"management": decided.document(), "versions": [version.as_dict() for version in maps]},
        found.id,
    )
    return ReplicaRecord(found, management, {version["id"]: version for version in maps}, value)


def _only(record: ReplicaRecord, numbers: Collection[int]) -> ReplicaRecord:
    versions = tuple(version for version in record.value.versions if version.id in numbers)
    maps = {number: version for number, version in record.versions.items() if number in numbers}
    return ReplicaRecord(record.map, record.management, maps, record.value.model_copy(update={"versions": versions}))
