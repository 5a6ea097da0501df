"""Apply grants: set members of the groups that own our data, computed from all grants of an account.

Each run computes the account's permissions after the change and sets its roles accordingly. So runs are idempotent, and
their order does not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.jazz import AccountId
from reside.model.constants import SENTINEL_CONTRACT
from reside.model.kinds import KINDS
from reside.sentinel.contract.data import open_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.jazz import Group, Role
    from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef
    from reside.replica import Context

_MANAGE: Final = frozenset(kind.manage for kind in KINDS)
HANDLED: Final = tuple(name for kind in KINDS for name in (kind.read, kind.manage))


def granted_names(permissions: Iterable[ControlBlockPermission], account: str) -> frozenset[str]:
    """Return the names of the permissions of our contract that an account currently has."""
    return frozenset(
        permission.ref.name
        for permission in permissions
        if permission.ref.account == account and permission.ref.contract == SENTINEL_CONTRACT and permission.in_force
    )


def roles(names: frozenset[str]) -> tuple[Role | None, Role | None]:
    """Return the roles of an account with these permissions: in the declarers' group, and in the readers' group."""
    return ("writer" if names & _MANAGE else None), ("reader" if names else None)


async def changed(context: Context, ref: PermissionRef, grant: Grant) -> None:
    """Set the grantee's roles in the groups after this change of one of its permissions."""
    names = granted_names(context.rcb.permissions_of(ref.account), ref.account)
    names = names | {ref.name} if grant.granted else names - {ref.name}
    data = await open_data(context)
    declares, reads = roles(names)
    # One at a time, because two concurrent removals would each reveal a new key to the other member.
    async with context.transaction(f"members/{data.declarers.id}") as tx:
        await tx.run_exclusively(lambda: _set_role(data.declarers, AccountId(ref.account), declares))
        await tx.run_exclusively(lambda: _set_role(data.readers, AccountId(ref.account), reads))


async def _set_role(group: Group, account: AccountId, role: Role | None) -> None:
    if role is not None:
        await group.add_member(account, role)
    elif account in group.members():
        await group.remove_member(account)
