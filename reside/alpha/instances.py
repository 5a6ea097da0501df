"""Instances: the replica that an approved request updates, or a new one with account, secret, control block, look-ups.

Alpha, the Sentinel and the seed have fixed ids. Alpha and the Sentinel exist before they are loaded: the bootstrap has
stored their accounts and control blocks, which the first load uses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reside.alpha import lookups, records
from reside.alpha.active_versions import ACTIVE, LAST
from reside.alpha.candidate import updated_replica
from reside.alpha.granting import control_blocks
from reside.alpha.lookups import Reservation
from reside.jazz import Credentials, Node
from reside.model import lookup
from reside.model.constants import FIRST_FREE_ID
from reside.model.errors import LoadRefused, NotReady
from reside.model.identities import system_id
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


async def prepare_account(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> Credentials | None:
    """Register the account of the new instance that an approved request creates; None if it creates none.

    It needs a connection of its own, so it runs before Alpha's lock is taken. The agent secret is stored before the
    account is published, under a name that follows from the request, so a later run continues with the same account.
    """
    if await _existing_id(alpha, record, approved) is not None:
        return None
    if await find_system_account(alpha.data, approved.identity) is not None:
        return None
    secret = await secret_map(alpha.data, _secret_of(record))
    if REFERENCED_VALUE not in secret:
        secret.set(REFERENCED_VALUE, Credentials.generate().agent_secret)
        await alpha.node.flush()
    credentials = Credentials.from_secret(str(secret[REFERENCED_VALUE]))
    async with Node(alpha.context.settings.sync_server_url, credentials) as node:
        await node.register(approved.name)
        await node.flush()
    return credentials


async def instance_of(
    alpha: Alpha, record: RequestRecord, approved: ApproveRequest, prepared: Credentials | None
) -> ReplicaRecord:
    """Return the replica of an approved request; create it if it does not exist. The caller holds Alpha's lock.

    Args:
        alpha: the running Alpha.
        record: the request.
        approved: what was approved.
        prepared: the account of a new instance (`prepare_account`).

    Raises:
        LoadRefused: the name has been taken in the meantime.
        NotReady: a new instance is needed, but no account was prepared.
    """
    number = record.map.get("targetReplica")
    if not isinstance(number, int):
        number = await _replica_id(alpha, record, approved)
        record.map.set("targetReplica", number)
    target = await lookups.find(alpha.data, lookup.replica_by_id(number))
    if target is None:
        account = await _account(alpha, record, approved, number, prepared)
        made = await _make(alpha, number, approved, account, record.value.owner)
    else:
        made = await records.read_active(alpha.data, target)
    await _index(alpha.data, made)
    lookups.confirm_id(alpha.data, _reservation(record), number)
    return made


def _reservation(record: RequestRecord) -> Reservation:
    return Reservation(record.map.id, "nextReplica", FIRST_FREE_ID)


def _secret_of(record: RequestRecord) -> str:
    return f"agent-secret.of-request.{record.value.id}"


async def _existing_id(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> int | None:
    """Return the id of the replica that the request updates, or that an earlier run created for it."""
    chosen = record.map.get("targetReplica")
    if isinstance(chosen, int) and await lookups.find(alpha.data, lookup.replica_by_id(chosen)) is not None:
        return chosen
    existing = await updated_replica(
        alpha, approved.identity, exclusive=approved.info.exclusive, replica_id=record.value.existing_replica
    )
    return None if existing is None else existing.id


async def _replica_id(alpha: Alpha, record: RequestRecord, approved: ApproveRequest) -> int:
    existing = await _existing_id(alpha, record, approved)
    if existing is not None:
        return existing
    if (number := system_id(approved.identity)) is not None:
        return number
    return await lookups.reserve_id(alpha.data, lookup.replica_by_id, _reservation(record))


async def _account(
    alpha: Alpha, record: RequestRecord, approved: ApproveRequest, number: int, prepared: Credentials | None
) -> InstanceAccount:
    """Return the account of a new instance with its control block, which is created if it does not exist."""
    stored = await find_system_account(alpha.data, approved.identity)
    if stored is not None:
        return stored
    if prepared is None:
        raise NotReady(f"the account of {approved.name} is not prepared: the replica that it updates has gone")
    secret = await secret_map(alpha.data, _secret_of(record))
    block = await control_blocks.make_block(alpha.data, number, approved.name, prepared.account_id)
    return InstanceAccount(prepared.account_id, block, secret.id)


async def _make(
    alpha: Alpha, number: int, approved: ApproveRequest, account: InstanceAccount, owner: str
) -> ReplicaRecord:
    """Create a replica without versions; the look-up by id points to it once it is complete."""
    data = alpha.data
    taken = await lookups.find(data, lookup.replica_by_name(approved.name))
    if taken is not None:
        raise LoadRefused(f"the name {approved.name} has been taken in the meantime: create a new load request")
    management = data.management_group.create_map({"enabled": True})
    replica = data.replicas_group.create_map(
        {
            "id": number,
            "name": approved.name,
            "identity": approved.identity,
            "info": approved.document()["info"],
            "account": account.account,
            "owner": owner,
            "controlBlock": account.control_block,
            "agentSecret": account.agent_secret,
            "management": management.id,
            "versions": data.replicas_group.create_list().id,
            ACTIVE: {},
            LAST: 0,
        }
    )
    await lookups.set_target(data, lookup.replica_by_id(number), replica.id)
    return await records.read_active(data, replica.id)


async def _index(data: AlphaData, replica: ReplicaRecord) -> None:
    value = replica.value
    await lookups.set_target(data, lookup.replica_by_name(value.name), replica.map.id)
    await lookups.add_target(data, lookup.replicas_by_identity(value.identity), replica.map.id, value.id)
    if data.replicas_by_account.get(value.account) != value.id:
        data.replicas_by_account.set(value.account, value.id)
    lookups.add_once(data.replicas, replica.map.id)


async def secret_map(data: AlphaData, name: str) -> CoMap:
    """Return the map with this unique name in the group `secrets`; its member `value` is an agent secret."""
    return await data.node.unique_map(data.secrets_group, name)


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
