"""Who must grant what to a replica: a version's requirements as grants by granting replica. And Alpha's own handlers.

Alpha grants nothing of others: it writes `expected` into the control block of each replica that serves a requirement;
that replica carries it out and writes `current` (docs/model.md, section 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha import records
from reside.alpha.data import open_data, with_managers
from reside.alpha.management import pin
from reside.jazz import AccountId
from reside.model import alpha_contract
from reside.model.constants import ALPHA_CONTRACT
from reside.model.permissions import Grant, PermissionRef, is_granted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reside.jazz import Group
    from reside.model.entities import Replica, Requirement
    from reside.replica import Context

Wanted = dict[int, dict[PermissionRef, Grant]]
"""Id of the granting replica → what it shall grant."""


def expected_grants(account: str, requirements: Mapping[str, Requirement]) -> Wanted:
    """What each serving replica shall grant to `account` for these requirements; rejected ones are left out."""
    wanted: Wanted = {}
    for requirement in requirements.values():
        for replica in requirement.replicas:
            grants = wanted.setdefault(replica.id, {})
            for permission in requirement.permissions:
                ref = PermissionRef(account, requirement.contract, permission.permission, permission.instance_id)
                if permission.status == "approved":
                    grants[ref] = Grant(granted=True, params=permission.params)
    return wanted


def grants_ever_expected(replica: Replica) -> dict[int, set[PermissionRef]]:
    """What any version of a replica asked for, by the id of the replica that shall grant it.

    What an administrator granted by hand is not among it, so that an update of the replica does not withdraw it.
    """
    asked: dict[int, set[PermissionRef]] = {}
    for version in replica.versions:
        for number, grants in expected_grants(replica.account, version.requirements).items():
            asked.setdefault(number, set()).update(grants)
    return asked


HANDLED = {
    alpha_contract.READ_REPLICAS: (alpha_contract.REPLICAS_GROUP, "reader"),
    alpha_contract.MANAGE_REPLICAS: (alpha_contract.REPLICA_MANAGERS_GROUP, "writer"),
    alpha_contract.READ_REQUESTS: (alpha_contract.LOAD_REQUESTS_GROUP, "reader"),
    alpha_contract.MANAGE_BLOCKS: (alpha_contract.BLOCK_MANAGERS_GROUP, "writer"),
}
"""Alpha's permissions that are roles in its groups: name → (member of the root map that names the group, role).

The others are asked for at each call.
"""


async def granted(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    """Carry out a permission on Alpha: a role in a group."""
    group, role = await _group(context, ref)
    await group.add_member(AccountId(ref.account), "reader" if role == "reader" else "writer")


async def revoked(context: Context, ref: PermissionRef, _grant: Grant) -> None:
    """Take the role away; the group's read key changes, so later content is closed to the account."""
    group, _ = await _group(context, ref)
    await group.remove_member(AccountId(ref.account))


async def manager_revoked(context: Context, ref: PermissionRef, grant: Grant) -> None:
    """Take `replica:manage:all` away; what the account had decided stays, in Alpha's name."""
    data = with_managers(await open_data(context.node, context.data[ref.contract]), managers(context))
    for replica in await records.all_replicas(data):
        pin(replica.management, replica.value.management, ref.account)
    await context.node.flush()
    await revoked(context, ref, grant)


def managers(context: Context) -> Callable[[str], bool]:
    """Whether an account has `replica:manage:all` at the moment of asking."""

    def may_manage(account: str) -> bool:
        ref = PermissionRef(account, ALPHA_CONTRACT, alpha_contract.MANAGE_REPLICAS)
        return is_granted(context.rcb.permissions(), ref)

    return may_manage


async def _group(context: Context, ref: PermissionRef) -> tuple[Group, str]:
    member, role = HANDLED[ref.name]
    root = context.data[ref.contract]
    return await context.node.load_group(root[member]), role
