"""The handlers of Alpha's own permissions, which are roles in its groups (docs/model.md, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import records
from reside.alpha.data import open_data, with_managers
from reside.alpha.management import take_over
from reside.jazz import AccountId
from reside.model import alpha_contract
from reside.model.constants import ALPHA_CONTRACT
from reside.model.permissions import PermissionRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from reside.jazz import Group
    from reside.model.permissions import Grant
    from reside.replica import Context

GROUP_ROLES = {
    alpha_contract.READ_REPLICAS: (alpha_contract.REPLICAS_GROUP, "reader"),
    alpha_contract.MANAGE_REPLICAS: (alpha_contract.REPLICA_MANAGERS_GROUP, "writer"),
    alpha_contract.READ_REQUESTS: (alpha_contract.LOAD_REQUESTS_GROUP, "reader"),
    alpha_contract.MANAGE_BLOCKS: (alpha_contract.BLOCK_MANAGERS_GROUP, "writer"),
    alpha_contract.MANAGE_PERMISSIONS: (alpha_contract.PERMISSION_MANAGERS_GROUP, "reader"),
}
"""Alpha's permissions that are roles in its groups: name → (member of the root map that names the group, role).

The other permissions are checked at each call.
"""


async def granted(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    """Grant a permission on Alpha: add the account to a group."""
    group, role = await _group(context, ref)
    async with context.transaction(_members(group)) as tx:
        await tx.run_exclusively(
            lambda: group.add_member(AccountId(ref.account), "reader" if role == "reader" else "writer")
        )


async def revoked(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    """Revoke a permission: remove the account from the group, whose read key is rotated."""
    group, _ = await _group(context, ref)
    async with context.transaction(_members(group)) as tx:
        await tx.run_exclusively(lambda: group.remove_member(AccountId(ref.account)))


async def manager_revoked(context: Context, ref: PermissionRef, grant: Grant) -> None:
    """Revoke `replica:manage:all`; what the account has configured stays, in Alpha's name."""
    data = with_managers(await open_data(context.node, context.data[ref.contract]), managers(context))
    for co_id in data.replicas.as_list():
        replica = await records.read_outline(data, co_id)
        take_over(replica.management, replica.value.management, ref.account)
    await context.node.flush()
    await revoked(context, ref, grant)


def managers(context: Context) -> Callable[[str, int], bool]:
    """Return a function that returns whether an edit by an account, with this time in ms, counts."""

    def may_manage(account: str, at: int) -> bool:
        ref = PermissionRef(account, ALPHA_CONTRACT, alpha_contract.MANAGE_REPLICAS)
        return context.rcb.was_granted(ref, at)

    return may_manage


def _members(group: Group) -> str:
    """Return the lock of a group's members: two concurrent removals would each reveal a new key to the other member."""
    return f"members/{group.id}"


async def _group(context: Context, ref: PermissionRef) -> tuple[Group, str]:
    member, role = GROUP_ROLES[ref.name]
    root = context.data[ref.contract]
    return await context.node.load_group(root[member]), role
