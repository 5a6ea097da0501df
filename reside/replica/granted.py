"""What other replicas have granted to this one: look it up, wait for it, ask for it.

A replica publishes what is in force for each grantee in a map that only the grantee can read
(`reside.replica.grants`). A replica may start before its permissions are granted, so its code waits here: an entry
counts as soon as it arrives, without polling.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from reside.jazz import CoId, JazzTimeout, ValueNotFound
from reside.model.alpha_contract import DIRECT_GRANTS, REQUEST_PERMISSION
from reside.model.errors import NotAllowed, NotReady
from reside.model.lookup import granted_permissions, target_of
from reside.model.permissions import PermissionRef

if TYPE_CHECKING:
    from reside.jazz import CoMap, Node
    from reside.replica.peers import Peer

_REFUSED: Final = ("rejected", "revoked")


async def find_granted(peer: Peer, permission: str, instance_id: str | None) -> dict[str, Any] | None:
    """See `Peer.granted`."""
    node = peer.caller.node
    pointer = await node.find_unique_map(peer.profile.group.id, granted_permissions(node.account_id))
    target = None if pointer is None else target_of(pointer)
    return None if target is None else _params(await node.load_map(CoId(target)), peer, permission, instance_id)


async def wait_until_granted(
    peer: Peer, permission: str, instance_id: str | None, within_s: float | None
) -> dict[str, Any]:
    """See `Peer.until_granted`."""
    try:
        async with asyncio.timeout(within_s):
            return await _wait(peer, permission, instance_id)
    except TimeoutError:
        raise NotReady(
            f"{peer.name} has not granted {permission} of {peer.contract} within {within_s:g} s: "
            f"see `reside permission explain` for the account {peer.caller.node.account_id}"
        ) from None


async def ask_and_wait(
    alpha: Peer,
    peer: Peer,
    permission: str,
    *,
    instance_id: str | None,
    params: dict[str, Any],
    reason: str,
    within_s: float | None,
) -> dict[str, Any]:
    """See `Context.ask`."""
    order = {"replica": _number(peer), "contract": peer.contract, "permission": permission, "instanceId": instance_id}
    stored: Any = await alpha.call(REQUEST_PERMISSION, {**order, "params": params, "reason": reason})
    _check(peer, permission, stored)
    order["instanceId"] = instance_id = stored.get("instanceId")  # as the contract reads it
    waiting = asyncio.create_task(wait_until_granted(peer, permission, instance_id, within_s))
    refusal = asyncio.create_task(_until_refused(stored[DIRECT_GRANTS], peer, order))
    try:
        await asyncio.wait({waiting, refusal}, return_when=asyncio.FIRST_COMPLETED)
        if refusal.done() and not waiting.done():
            refusal.result()
        return await waiting
    finally:
        for task in (waiting, refusal):
            task.cancel()
        await asyncio.gather(waiting, refusal, return_exceptions=True)


async def _wait(peer: Peer, permission: str, instance_id: str | None) -> dict[str, Any]:
    node = peer.caller.node
    pointer = await _appearing(node, node.unique_map_id(peer.profile.group.id, granted_permissions(node.account_id)))
    async with pointer.watch() as pointed:
        async for _ in pointed:
            if target_of(pointer) is not None:
                break
    target = target_of(pointer)
    if target is None:
        raise NotReady("this replica is stopping")
    published = await node.load_map(CoId(target))
    async with published.watch() as changes:
        async for _ in changes:
            if (found := _params(published, peer, permission, instance_id)) is not None:
                return found
    raise NotReady("this replica is stopping")


async def _appearing(node: Node, co_id: CoId) -> CoMap:
    """Return a map once it exists. Each load waits for its arrival for some seconds."""
    while True:
        with suppress(ValueNotFound, JazzTimeout):
            return await node.load_map(co_id)


async def _until_refused(direct_grants: str, peer: Peer, order: dict[str, Any]) -> None:
    """Wait until people refuse the permission; `direct_grants` is the id of the map with what they decide.

    Raises:
        NotAllowed: they did; the message has their reason.
    """
    mine = await peer.caller.node.load_map(CoId(direct_grants))
    async with mine.watch() as changes:
        async for _ in changes:
            for stored in mine.as_dict().values():
                if isinstance(stored, dict) and all(stored.get(name) == value for name, value in order.items()):
                    _check(peer, order["permission"], stored)


def _check(peer: Peer, permission: str, stored: Any) -> None:
    if isinstance(stored, dict) and stored.get("status") in _REFUSED:
        decided = stored.get("decided") or {}
        why = f": {decided['reason']}" if decided.get("reason") else ""
        raise NotAllowed(f"{permission} of {peer.name} was {stored['status']}{why}; people can still grant it")


def _number(peer: Peer) -> int:
    if peer.profile.replica_id is None:
        raise NotReady(f"replica {peer.name} has not published its id yet")
    return peer.profile.replica_id


def _params(published: CoMap, peer: Peer, permission: str, instance_id: str | None) -> dict[str, Any] | None:
    key = PermissionRef(peer.caller.node.account_id, peer.contract, permission, instance_id).key
    params = published.get(key)
    return dict(params) if isinstance(params, dict) else None
