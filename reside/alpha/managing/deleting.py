"""Delete a replica, second half: the leader carries the order out.

First nobody else gets the replica as a provider, and what it was granted is withdrawn. Then the Sentinel deletes its
objects. When that is reported, everything that names it goes: look-ups, its place in the lists, its secret, and its
account's role in its control block. Its name is free again; its id is never used again.

Every step checks whether it was done, and the replica leaves the list of replicas last. So a leader that dies is
followed by one that continues. The maps of the replica and of its versions stay, unlisted, for the history of requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from reside.alpha import lookups
from reside.alpha.active_versions import providers, unlist_dependant
from reside.alpha.granting import direct
from reside.alpha.granting.sync import Grantee, sync_grants
from reside.alpha.lock_access import withdraw_access
from reside.alpha.versions import sync_providers
from reside.jazz import AccountId, ValueDeleted
from reside.model import lookup
from reside.model.entities import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.alpha.granting.blocks import Blocks
    from reside.alpha.records import ReplicaRecord
    from reside.alpha.state import Alpha
    from reside.model.entities import DirectGrant, Replica

_log = structlog.get_logger(__name__)
_OPEN = ("pending", "approved")


async def delete_replica(alpha: Alpha, blocks: Blocks, record: ReplicaRecord) -> bool:
    """Take a deletion as far as it can go now; return whether it is complete.

    Raises:
        NotReady: the Sentinel can't be reached yet.
    """
    replica = record.value
    await sync_providers(alpha, record)
    await _revoke(alpha, replica, replica.account, lambda _grant: True)
    await sync_grants(alpha, blocks, Grantee(replica.account, replica))
    if alpha.lease is not None:
        await alpha.lease.check()
    if not await alpha.sentinel.remove(replica.name):
        return False
    for account in list(alpha.data.direct_grants):
        await _revoke(alpha, replica, account, lambda grant: grant.replica == replica.id)
    await withdraw_access(alpha, replica.account)
    async with alpha.transaction() as tx:
        await tx.run_exclusively(lambda: _forget(alpha, record))
    blocks.forget(replica.id)
    _log.info("replica deleted", replica=replica.name, id=replica.id)
    return True


async def _revoke(alpha: Alpha, replica: Replica, account: str, concerns: Callable[[DirectGrant], bool]) -> None:
    """Revoke the direct grants of an account that the deletion concerns.

    They are found in what Alpha has written. The control block may have any number of entries of a hostile replica.
    """
    order = replica.deletion
    by = alpha.account if order is None else order.by
    decided = Decision(by=by, at=alpha.node.now_ms(), reason=f"replica {replica.name} was deleted")

    async def ended() -> list[DirectGrant]:
        found = (await direct.read_all(alpha.data, account)).values()
        update = {"status": "revoked", "decided": decided}
        return [grant.model_copy(update=update) for grant in found if grant.status in _OPEN and concerns(grant)]

    async def write() -> None:
        await direct.write(alpha.data, account, *await ended())

    if await ended():
        async with alpha.transaction() as tx:
            await tx.run_exclusively(write)


async def _forget(alpha: Alpha, record: ReplicaRecord) -> None:
    """Remove everything that names the replica. The caller holds Alpha's lock."""
    data, replica = alpha.data, record.value
    await _destroy_secret(alpha, replica)
    block = await alpha.node.load_map(replica.control_block)
    await block.group.remove_member(AccountId(replica.account))
    await unlist_dependant(data, record.map, providers(replica.versions))
    await lookups.remove_target(data, lookup.replicas_by_identity(replica.identity), record.map.id)
    await lookups.clear(data, lookup.replica_by_name(replica.name), record.map.id)
    await lookups.clear(data, lookup.rcb_by_id(replica.id), replica.control_block)
    if replica.account in data.replicas_by_account:
        data.replicas_by_account.delete(replica.account)
    lookups.remove_once(data.blocks, replica.control_block)
    await alpha.node.flush()
    await lookups.clear(data, lookup.replica_by_id(replica.id), record.map.id)
    lookups.remove_once(data.replicas, record.map.id)


async def _destroy_secret(alpha: Alpha, replica: Replica) -> None:
    """Delete the value of the agent secret, if the rollout has not done it; the sync server erases its content."""
    if replica.agent_secret is None:
        return
    try:
        secret = await alpha.node.load_map(replica.agent_secret)
    except ValueDeleted:
        return
    if not secret.deleted:
        secret.destroy()
