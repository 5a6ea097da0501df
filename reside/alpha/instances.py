"""Instances: the replica that an approved request updates, or a new one with account, secret, control block, look-ups.

Alpha, the Sentinel and the seed have fixed ids. Alpha and the Sentinel exist before they are loaded: the bootstrap has
stored their accounts and control blocks, which the first load uses.
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
class InstanceAccount:
    """The account of an instance, its control block, and the map of its agent secret (group `secrets`)."""

    account: str
    control_block: str
    agent_secret: str


async def instance_of(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> ReplicaRecord:
    """Return the replica of an approved request; create it if it does not exist. The caller holds Alpha's lock.

    Raises:
        LoadRefused: the name has been taken in the meantime.
    """
    number = record.map.get("targetReplica")
    if not isinstance(number, int):
        number = await _replica_id(alpha, record, approved)
        record.map.set("targetReplica", number)
    target = await lookups.find(alpha.data, lookup.replica_by_id(number))
    made = await records.read_replica(alpha.data, target) if target else await _make(alpha, number, approved)
    await _index(alpha.data, made)
    lookups.confirm_id(alpha.data, _reservation(record), number)
    return made


def _reservation(record: RequestRecord) -> Reservation:
    return Reservation(record.map.id, "nextReplica", FIRST_FREE_ID)


async def _replica_id(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> int:
    existing = await updated_replica(
        alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=record.value.existing_replica
    )
    if existing is not None:
        return existing.id
    if approved.identity in SYSTEM_IDS:
        return SYSTEM_IDS[approved.identity]
    return await lookups.reserve_id(alpha.data, lookup.replica_by_id, _reservation(record))


async def _make(alpha: Alpha, number: int, approved: ApproveRequest) -> ReplicaRecord:
    """Create a replica without versions; the look-up by id points to it once it is complete."""
    data = alpha.data
    taken = await lookups.find(data, lookup.replica_by_name(approved.name))
    if taken is not None:
        raise LoadRefused(f"the name {approved.name} has been taken in the meantime: create a new load request")
    account = await find_system_account(data, approved.identity) or await _make_account(alpha, number, approved.name)
    management = data.management_group.create_map({"enabled": True})
    replica = data.replicas_group.create_map(
        {
            "id": number,
            "name": approved.name,
            "identity": approved.identity,
            "info": approved.document()["info"],
            "account": account.account,
            "controlBlock": account.control_block,
            "agentSecret": account.agent_secret,
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


async def _make_account(alpha: Alpha, number: int, name: str) -> InstanceAccount:
    """Create account and control block of a new instance; store the agent secret before the account is published."""
    secret = await secret_map(alpha.data, number)
    if REFERENCED_VALUE not in secret:
        secret.set(REFERENCED_VALUE, Credentials.generate().agent_secret)
        await alpha.node.flush()
    credentials = Credentials.from_secret(str(secret[REFERENCED_VALUE]))
    async with Node(alpha.context.settings.sync_server_url, credentials) as node:
        await node.register(name)
        await node.flush()
    block = await control_blocks.make_block(alpha.data, number, name, credentials.account_id)
    return InstanceAccount(credentials.account_id, block, secret.id)


async def secret_map(data: AlphaData, number: int) -> CoMap:
    """Return the map for the agent secret of the replica with this id; its member `value` is the secret."""
    return await data.node.unique_map(data.secrets_group, f"agent-secret.{number}")


async def store_system_account(data: AlphaData, identity: str, found: InstanceAccount) -> None:
    """Store the account of a system replica, for its first load. The caller holds Alpha's lock."""
    members = {
        "account": found.account,
        "controlBlock": found.control_block,
        "agentSecret": found.agent_secret,
    }
    target = await data.node.unique_map(data.public, _system_map(identity), members)
    target.update({key: value for key, value in members.items() if target.get(key) != value})


async def find_system_account(data: AlphaData, identity: str) -> InstanceAccount | None:
    """Return the account of the system replica with this identity; None if it was not stored."""
    found = await data.node.find_unique_map(data.public.id, _system_map(identity))
    if found is None:
        return None
    return InstanceAccount(str(found["account"]), str(found["controlBlock"]), str(found["agentSecret"]))


def _system_map(identity: str) -> str:
    return f"system.by-identity.{identity}"
