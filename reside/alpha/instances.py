"""Instances: the replica that an approved request updates, or a new one with account, secret, control block, indexes.

Alpha, the Sentinel and the seed have fixed ids. Alpha and the Sentinel exist before they are loaded: the bootstrap
registered their accounts and control blocks, which are used as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reside.alpha import control_blocks, lookups, records
from reside.alpha.candidate import updated_replica
from reside.alpha.lookups import Reservation
from reside.jazz import Credentials, Node
from reside.model import lookup
from reside.model.constants import FIRST_FREE_ID, SYSTEM_IDS
from reside.model.errors import LoadRefused
from reside.model.sentinel_data import REFERENCED_VALUE

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.alpha.records import ReplicaRecord, RequestRecord
    from reside.alpha.state import Alpha
    from reside.jazz import CoMap
    from reside.model.entities import ApproveRequest


@dataclass(frozen=True)
class Identity:
    """Who an instance is: its account, its control block, and where its agent secret stands (a map in `secrets`)."""

    account: str
    control_block: str
    agent_secret: str


async def instance_of(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> ReplicaRecord:
    """The replica of an approved request, made if it is missing. The caller holds Alpha's lock.

    Raises:
        LoadRefused: the name was taken meanwhile.
    """
    number = record.map.get("targetReplica")
    if not isinstance(number, int):
        number = await _number(alpha, record, approved)
        record.map.set("targetReplica", number)
    target = await lookups.find(alpha.data, lookup.replica_by_id(number))
    made = await records.read_replica(alpha.data, target) if target else await _make(alpha, number, approved)
    await _index(alpha.data, made)
    lookups.confirm_id(alpha.data, _reservation(record), number)
    return made


def _reservation(record: RequestRecord) -> Reservation:
    return Reservation(record.map.id, "nextReplica", FIRST_FREE_ID)


async def _number(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> int:
    existing = await updated_replica(
        alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=record.value.existing_replica
    )
    if existing is not None:
        return existing.id
    if approved.identity in SYSTEM_IDS:
        return SYSTEM_IDS[approved.identity]
    return await lookups.reserve_id(alpha.data, lookup.replica_by_id, _reservation(record))


async def _make(alpha: Alpha, number: int, approved: ApproveRequest) -> ReplicaRecord:
    """A new replica without a version; the look-up by id points to it when it is complete."""
    data = alpha.data
    taken = await lookups.find(data, lookup.replica_by_name(approved.name))
    if taken is not None:
        raise LoadRefused(f"the name {approved.name} was taken meanwhile: create the request anew")
    identity = await find_registered(data, approved.identity) or await _identity(alpha, number, approved.name)
    management = data.management_group.create_map({"enabled": True})
    replica = data.replicas_group.create_map(
        {
            "id": number,
            "name": approved.name,
            "identity": approved.identity,
            "info": approved.document()["info"],
            "account": identity.account,
            "controlBlock": identity.control_block,
            "agentSecret": identity.agent_secret,
            "management": management.id,
            "versions": data.replicas_group.create_list().id,
        }
    )
    await lookups.set_target(data, lookup.replica_by_id(number), replica.id)
    return await records.read_replica(data, replica.id)


async def _index(data: AlphaData, replica: ReplicaRecord) -> None:
    value = replica.value
    await lookups.set_target(data, lookup.replica_by_name(value.name), replica.map.id)
    await lookups.add_target(data, lookup.replicas_by_identity(value.identity), replica.map.id)
    lookups.add_once(data.replicas, replica.map.id)


async def _identity(alpha: Alpha, number: int, name: str) -> Identity:
    """Account and control block of a new instance; its agent secret is stored before the account is published."""
    secret = await secret_map(alpha.data, number)
    if REFERENCED_VALUE not in secret:
        secret.set(REFERENCED_VALUE, Credentials.generate().agent_secret)
        await alpha.node.flush()
    credentials = Credentials.from_secret(str(secret[REFERENCED_VALUE]))
    async with Node(alpha.context.settings.sync_server_url, credentials) as node:
        await node.register(name)
        await node.flush()
    block = await control_blocks.make_block(alpha.data, number, name, credentials.account_id)
    return Identity(credentials.account_id, block, secret.id)


async def secret_map(data: AlphaData, number: int) -> CoMap:
    """The map for the agent secret of the replica with this id: member `value`."""
    return await data.node.unique_map(data.secrets_group, f"agent-secret.{number}")


async def register(data: AlphaData, identity: str, found: Identity) -> None:
    """Note who the instance of a system identity is, for its load. The caller holds Alpha's lock."""
    members = {
        "account": found.account,
        "controlBlock": found.control_block,
        "agentSecret": found.agent_secret,
    }
    target = await data.node.unique_map(data.public, _registered(identity), members)
    target.update({key: value for key, value in members.items() if target.get(key) != value})


async def find_registered(data: AlphaData, identity: str) -> Identity | None:
    """Who the instance of a system identity is; None if it was not registered."""
    found = await data.node.find_unique_map(data.public.id, _registered(identity))
    if found is None:
        return None
    return Identity(str(found["account"]), str(found["controlBlock"]), str(found["agentSecret"]))


def _registered(identity: str) -> str:
    return f"system.by-identity.{identity}"
