"""Explain a permission: what is due to an account and why, and whether the permission is in force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reside.alpha import contracts, records
from reside.alpha.contract import packaged
from reside.alpha.granting import direct
from reside.alpha.granting.blocks import Blocks
from reside.alpha.granting.due import holding
from reside.model.permissions import PermissionRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reside.alpha.granting.decide import Order
    from reside.alpha.state import Alpha
    from reside.model.entities import Replica
    from reside.model.permissions import ControlBlockPermission


async def explain(alpha: Alpha, order: Order) -> dict[str, Any]:
    """Return as JSON what is known about one permission of an account.

    `inForce` is whether the account has it now, `expected` and `current` are the two parts of the entry in the control
    block, and `sources` is what makes it due: versions of the account's replica, and the direct grant in any status. An
    entry without a source was written by somebody with `rcb:manage:all`. `isDefined` is whether the contract has a
    permission of this name now.
    """
    ref = PermissionRef(order.account, order.contract, order.permission, order.instance_id)
    entry = await _entry(alpha, order.replica, ref)
    number = alpha.data.replicas_by_account.get(order.account)
    record = await records.find_active(alpha.data, number) if isinstance(number, int) else None
    sources = [] if record is None else list(_versions(record.value, order))
    granted = await direct.read_all(alpha.data, order.account)
    sources += [
        {"type": grant.request_type, **grant.document()}
        for grant in granted.values()
        if (grant.replica, grant.contract, grant.permission, grant.instance_id)
        == (order.replica, order.contract, order.permission, order.instance_id)
    ]
    return {
        "inForce": entry is not None and entry.in_force,
        "expected": None if entry is None else entry.expected.document(),
        "current": None if entry is None or entry.current is None else entry.current.document(),
        "sources": sources,
        "isDefined": await _is_defined(alpha, order),
    }


async def _is_defined(alpha: Alpha, order: Order) -> bool:
    manifest = packaged(order.contract) or await contracts.find_manifest(alpha.data, order.contract)
    return manifest is not None and order.permission in manifest.permissions


async def _entry(alpha: Alpha, replica: int, ref: PermissionRef) -> ControlBlockPermission | None:
    blocks = Blocks(alpha.data, lambda _account: None)
    try:
        block = await blocks.find(replica)
        if block is None:
            return None
        await block.refresh_entry(ref.key)
        return block.find(ref)
    finally:
        blocks.close()


def _versions(replica: Replica, order: Order) -> Iterator[dict[str, Any]]:
    """Yield the requirements of versions that ask for the permission."""
    for version in holding(replica):
        for key, requirement in version.requirements.items():
            serving = {choice.id for choice in requirement.replicas}
            asked = {(p.permission, p.instance_id) for p in requirement.permissions}
            is_asked = order.replica in serving and (order.permission, order.instance_id) in asked
            if is_asked and requirement.contract == order.contract:
                yield {
                    "type": "static",
                    "replica": replica.name,
                    "version": version.id,
                    "request": version.request,
                    "requirement": key,
                }
