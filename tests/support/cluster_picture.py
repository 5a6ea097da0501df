"""A picture of everything that Alpha has written: entities, look-ups, stacks and permissions, as plain values.

`support.cluster_invariants` says which pictures are possible.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.deleted_values import is_deleted

from reside.alpha import finished_requests, lookups, open_requests, records
from reside.alpha.granting import direct
from reside.alpha.granting.control_blocks import opened
from reside.alpha.loading import naming, turns
from reside.alpha.rendering import render_replica
from reside.jazz import ValueDeleted
from reside.model import lookup
from reside.model.constants import ALPHA_ID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reside.alpha.data import AlphaData
    from reside.alpha.state import Alpha
    from reside.model.entities import DirectGrant, LoadRequest, Replica
    from reside.model.permissions import ControlBlockPermission
    from reside.model.stacks import DesiredStack

NOBODY = -1
"""The id of no request."""


@dataclass(frozen=True)
class SeenRequest:
    """A listed load request.

    Attributes:
        map: id of its map.
        value: the request.
        by_id: where the look-up of its id points.
        holds_name: whether its name is taken, by a request or a replica.
        has_turn: whether it has the turn of a replica.
    """

    map: str
    value: LoadRequest
    by_id: str | None
    holds_name: bool = False
    has_turn: bool = False


@dataclass(frozen=True)
class Block:
    """A control block: its id, the entries of grantees, and who serves the requirements of its replica."""

    id: str
    entries: tuple[ControlBlockPermission, ...]
    requirements: dict[str, list[str]]


@dataclass(frozen=True)
class SeenReplica:
    """A listed replica.

    Attributes:
        map: id of its map.
        value: the replica.
        by_id, by_name, block_by_id: where the look-ups of its id, its name and its block point.
        by_identity: the replicas that the look-up of its identity lists.
        block: its control block.
        desired: its desired stack, as it is declared.
        rendered: its desired stack, as it is rendered now.
        has_secret: whether its agent secret is still in Jazz.
        dependants: the replicas that the look-up of its dependants lists.
    """

    map: str
    value: Replica
    by_id: str | None
    by_name: str | None
    block_by_id: str | None
    by_identity: tuple[str, ...]
    block: Block
    desired: DesiredStack | None
    rendered: DesiredStack
    has_secret: bool
    dependants: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """What Alpha has written.

    Attributes:
        requests, replicas: the listed ones.
        lost: maps of requests that existed before, are in no index, and are not deleted.
        open: the index of open requests: id → id of the map.
        accounts: account → id of its replica.
        blocks: the listed control blocks.
        own_block: Alpha's control block.
        providers: contract → the replicas that its look-up lists.
        contracts: the listed contracts: id of the map → (id, identity).
        direct: account → its direct grants.
        declared: the stacks that are declared at the Sentinel.
        previewed: the keys of the candidates that are declared at the Sentinel.
        gone: of replicas that existed before: what still names them.
    """

    requests: tuple[SeenRequest, ...] = ()
    replicas: tuple[SeenReplica, ...] = ()
    lost: tuple[str, ...] = ()
    open: dict[str, str] = field(default_factory=dict)
    accounts: dict[str, int] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()
    own_block: Block = Block("", (), {})
    providers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    contracts: dict[str, tuple[int, str]] = field(default_factory=dict)
    direct: dict[str, tuple[DirectGrant, ...]] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    previewed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


@dataclass
class History:
    """What earlier pictures of a cluster have shown, which may not change any more.

    Attributes:
        replicas: those that exist or existed, by id.
        replica_maps, request_maps: id → id of the map.
        finished: maps of requests that were seen finished; a picture may leave them out.
        deleted: maps of requests that were seen deleted.
        gone: ids of replicas that nothing named any more; a picture may leave them out.
        digests: image, as it is requested → the digest that was pushed.
    """

    replicas: dict[int, Replica] = field(default_factory=dict)
    replica_maps: dict[int, str] = field(default_factory=dict)
    request_maps: dict[int, str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    digests: dict[str, str] = field(default_factory=dict)


async def take_picture(alpha: Alpha, history: History, *, whole: bool = True) -> Picture:
    """Read everything through a node of Alpha; unless it is to be whole, without what was finished or gone before."""
    data = alpha.data
    maps = await alpha.sentinel.open()
    replicas = tuple([await _replica(alpha, record) for record in await records.all_replicas(data)])
    left_out = set() if whole else history.finished
    requests = [await _request(data, record) for record in await finished_requests.all_requests(data, left_out)]
    known = {co_id: await data.node.load_map(co_id) for co_id in data.contracts.as_list()}
    absent = history.replicas.keys() - {seen.value.id for seen in replicas} - (set() if whole else history.gone)
    rcb = alpha.context.rcb
    await rcb.refresh()
    return Picture(
        requests=tuple(requests),
        replicas=replicas,
        lost=tuple([co_id async for co_id in _lost(data, history)]),
        open={key: str(value) for key, value in (await open_requests.index(data.node, data.root)).items()},
        accounts=data.replicas_by_account.as_dict(),
        blocks=tuple(data.blocks.as_list()),
        own_block=Block(rcb.id, rcb.permissions(), {k: list(v) for k, v in rcb.requirements().items()}),
        providers={
            value["identity"]: tuple(await lookups.find_all(data, lookup.replicas_by_contract(value["id"])))
            for value in known.values()
        },
        contracts={co_id: (value["id"], value["identity"]) for co_id, value in known.items()},
        direct={
            account: tuple((await direct.read_all(data, account)).values()) for account in data.direct_grants.as_dict()
        },
        declared=tuple(maps.desired),
        previewed=tuple(maps.previews),
        gone=tuple([trace async for trace in _traces(data, history, absent)]),
    )


async def _request(data: AlphaData, record: records.RequestRecord) -> SeenRequest:
    request = record.value
    approved = request.approve_request
    turn = None if approved is None else turns.turn_of(approved, await _updated(data, request))
    return SeenRequest(
        record.map.id,
        request,
        await lookups.find(data, lookup.load_request_by_id(request.id)),
        approved is not None and await naming.is_taken(data, approved.name, NOBODY),
        turn is not None and await turns.holder_of(data, turn) == request.id,
    )


async def _lost(data: AlphaData, history: History) -> AsyncIterator[str]:
    """Yield the maps of requests that exist and are in no index."""
    listed = set(await finished_requests.all_ids(data))
    for co_id in set(history.request_maps.values()) - listed - history.deleted:
        if await is_deleted(data.node, co_id):
            history.deleted.add(co_id)
        else:
            yield co_id


async def _updated(data: AlphaData, request: LoadRequest) -> Replica | None:
    found = None if request.existing_replica is None else await records.find_replica(data, request.existing_replica)
    return None if found is None else found.value


async def _replica(alpha: Alpha, record: records.ReplicaRecord) -> SeenReplica:
    data, replica = alpha.data, record.value
    return SeenReplica(
        record.map.id,
        replica,
        await lookups.find(data, lookup.replica_by_id(replica.id)),
        await lookups.find(data, lookup.replica_by_name(replica.name)),
        await lookups.find(data, lookup.rcb_by_id(replica.id)),
        tuple(await lookups.find_all(data, lookup.replicas_by_identity(replica.identity))),
        await _block(alpha, replica.control_block),
        await alpha.sentinel.read_desired(replica.name),
        await render_replica(alpha, replica),
        await _has_secret(alpha, replica),
        tuple(await lookups.find_all(data, lookup.dependants_of_replica(replica.id))),
    )


async def _block(alpha: Alpha, co_id: str) -> Block:
    async with opened(alpha.node, co_id) as block:
        requirements = {key: [str(account) for account in found] for key, found in block.requirements().items()}
        return Block(co_id, block.permissions(), requirements)


async def _has_secret(alpha: Alpha, replica: Replica) -> bool:
    if replica.agent_secret is None:
        return False
    try:
        return not (await alpha.node.load_map(replica.agent_secret)).deleted
    except ValueDeleted:
        return False


async def _traces(data: AlphaData, history: History, absent: set[int]) -> AsyncIterator[str]:
    """Yield what still names replicas that are gone."""
    for number in absent:
        found = [trace async for trace in _traces_of(data, number, history)]
        if not found:
            history.gone.add(number)
        for trace in found:
            yield trace


async def _traces_of(data: AlphaData, number: int, history: History) -> AsyncIterator[str]:
    """Yield what still names a replica that is gone."""
    replica, where = history.replicas[number], history.replica_maps[number]
    for name in (lookup.replica_by_id(number), lookup.rcb_by_id(number)):
        if await lookups.find(data, name) is not None:
            yield f"{name} of a deleted replica"
    if await lookups.find(data, lookup.replica_by_name(replica.name)) == where:
        yield f"the name {replica.name} of a deleted replica"
    if where in await lookups.find_all(data, lookup.replicas_by_identity(replica.identity)):
        yield f"the identity of the deleted replica {replica.name}"
    if replica.account in data.replicas_by_account:
        yield f"the account of the deleted replica {replica.name}"
    if replica.control_block in data.blocks.as_list():
        yield f"the control block of the deleted replica {replica.name}"
    group = (await data.node.load_map(replica.control_block)).group
    if group.role_of(replica.account) is not None:
        yield f"the role of the deleted replica {replica.name} in its control block"


def blocks_of(picture: Picture) -> dict[int, Block]:
    """Return Alpha's block and those of the listed replicas, by id."""
    return {ALPHA_ID: picture.own_block} | {seen.value.id: seen.block for seen in picture.replicas}
