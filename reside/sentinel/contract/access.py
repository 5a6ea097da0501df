"""What a granted permission opens: membership of the groups that own our data, out of all grants of an account.

Each run computes what the account may do after the change and makes the groups say so, so that running twice, or in
another order, ends the same.
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
    """Names of the permissions of our contract that an account has at present."""
    return frozenset(
        permission.ref.name
        for permission in permissions
        if permission.ref.account == account
        and permission.ref.contract == SENTINEL_CONTRACT
        and permission.current is not None
        and permission.current.granted
    )


def roles(names: frozenset[str]) -> tuple[Role | None, Role | None]:
    """Roles in the groups of the declarers and of the readers of an account with these permissions."""
    return ("writer" if names & _MANAGE else None), ("reader" if names else None)


async def changed(context: Context, ref: PermissionRef, grant: Grant) -> None:
    """Make the groups say what the grantee may do after this change of one of its permissions."""
    names = granted_names(context.rcb.permissions(), ref.account)
    names = names | {ref.name} if grant.granted else names - {ref.name}
    data = await open_data(context)
    declares, reads = roles(names)
    await _give(data.declarers, AccountId(ref.account), declares)
    await _give(data.readers, AccountId(ref.account), reads)


async def _give(group: Group, account: AccountId, role: Role | None) -> None:
    if role is not None:
        await group.add_member(account, role)
    elif account in group.members():
        await group.remove_member(account)
