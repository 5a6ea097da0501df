"""Apply grants: set members of the groups that own our data, computed from all grants of an account.

Each run computes the account's permissions after the change and sets its roles accordingly. So runs are idempotent, and
their order does not matter.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from reside.jazz import AccountId
from reside.model.constants import MADE_AT_TOLERANCE_MS, SENTINEL_CONTRACT
from reside.model.identities import resolved
from reside.model.kinds import KINDS, PERMITTED
from reside.model.sentinel_data import CONFIRM, OPERATOR_PERMISSIONS
from reside.sentinel.contract.data import open_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reside.jazz import Edit, Group, Role
    from reside.model.permissions import ControlBlockPermission, Grant, PermissionRef
    from reside.replica import Context
    from reside.sentinel.contract.data import SentinelData
    from reside.sentinel.contract.desired_stacks import Rights

_MANAGE: Final = frozenset(kind.manage for kind in KINDS)
HANDLED: Final = (*(name for kind in PERMITTED for name in (kind.read, kind.manage)), *OPERATOR_PERMISSIONS)


def granted_names(permissions: Iterable[ControlBlockPermission], account: str) -> frozenset[str]:
    """Return the names of the permissions of our contract that an account currently has."""
    return frozenset(
        permission.ref.name
        for permission in permissions
        if permission.ref.account == account
        and permission.ref.contract == resolved(SENTINEL_CONTRACT)
        and permission.in_force
    )


def confirmed_uids(history: Iterable[Edit], rights: Rights) -> frozenset[str]:
    """Return the uids of the objects whose deletion was confirmed by accounts that may do so now.

    Args:
        history: all assignments of the member `uids` in `pruneConfirmed`.
        rights: who may confirm.
    """
    lists = [
        edit.value
        for edit in history
        if not edit.deleted and edit.at <= rights.now_ms + MADE_AT_TOLERANCE_MS and rights.granted(edit.by, CONFIRM)
    ]
    return frozenset(uid for uids in lists if isinstance(uids, list) for uid in uids if isinstance(uid, str))


class Roles(NamedTuple):
    """The roles of an account in the groups that own our data; None: it is no member.

    Attributes:
        live: the kinds whose live objects it may read.
    """

    declarers: Role | None
    readers: Role | None
    operators: Role | None
    live: frozenset[str]


def roles(names: frozenset[str]) -> Roles:
    """Return the roles of an account with these permissions; who may declare objects of a kind may also read them."""
    return Roles(
        "writer" if names & _MANAGE else None,
        "reader" if names else None,
        "writer" if names.intersection(OPERATOR_PERMISSIONS) else None,
        frozenset(kind.kind for kind in KINDS if names & {kind.read, kind.manage}),
    )


async def changed(context: Context, ref: PermissionRef, grant: Grant) -> None:
    """Set the grantee's roles in the groups after this change of one of its permissions."""
    names = granted_names(context.rcb.permissions_of(ref.account), ref.account)
    names = names | {ref.name} if grant.granted else names - {ref.name}
    data = await open_data(context)
    due = roles(names)
    own = zip((data.declarers, data.readers, data.operators), due[:3], strict=True)
    live: list[tuple[Group, Role | None]] = [
        (group, "reader" if kind in due.live else None) for kind, group in data.live.items()
    ]
    # One at a time, because two concurrent removals would each reveal a new key to the other member.
    async with context.transaction(_members(data)) as tx:
        for group, role in (*own, *live):
            if group.members().get(ref.account) != role:
                await tx.run_exclusively(partial(_set_role, group, AccountId(ref.account), role))


def readers(context: Context, data: SentinelData) -> set[str]:
    """Return the accounts that may, or could, read what is live of some kind."""
    members = {account for group in data.live.values() for account in group.members()}
    granted = {permission.ref.account for permission in context.rcb.permissions()}
    return (members | granted) - {str(context.node.account_id)}


async def renew(context: Context, data: SentinelData, account: str) -> None:
    """Let an account read what is live of those kinds that it may read.

    An earlier release of the Sentinel, until its last pod has ended, grants and revokes without these groups.
    """
    due = _due_readers(context, data, account)
    if not due:
        return
    async with context.transaction(_members(data)) as tx:
        for kind, role in _due_readers(context, data, account).items():
            await tx.run_exclusively(partial(_set_role, data.live[kind], AccountId(account), role))


def _due_readers(context: Context, data: SentinelData, account: str) -> dict[str, Role | None]:
    """Return the kinds in whose group an account has another role than is due, with that role.

    A permission that is being granted at this moment is left to its handler.
    """
    permissions = context.rcb.permissions_of(account)
    granted = roles(granted_names(permissions, account)).live
    expected = roles(frozenset(p.ref.name for p in permissions if p.expected.granted)).live
    members = {kind for kind, group in data.live.items() if account in group.members()}
    missing: dict[str, Role | None] = dict.fromkeys(granted - members, "reader")
    return missing | dict.fromkeys(members - granted - expected)


def _members(data: SentinelData) -> str:
    """Return the name under which the members of all groups are locked."""
    return f"members/{data.declarers.id}"


async def _set_role(group: Group, account: AccountId, role: Role | None) -> None:
    if role is not None:
        await group.add_member(account, role)
    elif account in group.members():
        await group.remove_member(account)
