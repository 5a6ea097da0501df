"""Acceptance of invites: write the own role to the group as the invite's agent (see `reside.jazz.groups.invites`)."""

import asyncio
from typing import Final

from reside.jazz.errors import InvalidArgument, NotPermitted
from reside.jazz.groups.account import Account
from reside.jazz.groups.group import Group
from reside.jazz.groups.invites import Invite
from reside.jazz.groups.membership import give_role
from reside.jazz.groups.writer import GroupWriter
from reside.jazz.rules.group_state import INVITES
from reside.jazz.values.host import Host
from reside.jazz.values.owned import OwnedValue
from reside.jazz.values.value import Value

_RANKS: Final = {"writeOnly": 1, "reader": 2, "writer": 3, "manager": 4, "admin": 5}


async def accept_invite(host: Host, invite: Invite, *, timeout: float) -> Value:  # noqa: ASYNC109 - as in every load
    """Accept an invite; see `Node.accept_invite`."""
    host.store.check_account()
    value = await host.load_as(invite.value_id, Value, timeout=timeout)
    group = value.group if isinstance(value, OwnedValue) and value.has_owner else value
    if isinstance(group, Account) or not isinstance(group, Group):
        raise InvalidArgument(f"{invite.value_id} has no owning group; only groups have invites")
    agent = invite._agent
    role = await _offered_role(group, agent.agent_id, timeout)
    # Unlike JavaScript, do not replace a direct role by a lower one.
    if _RANKS.get(str(group._state.get(host.account_id)), 0) < _RANKS[role]:
        await give_role(group, GroupWriter(host, host.store.core(group.id), agent), host.account_id, role)
    return value


async def _offered_role(group: Group, agent_id: str, timeout: float) -> str:  # noqa: ASYNC109 - as above
    """Return the role that an invite gives; wait for it, because its creator may still be uploading it."""
    try:
        async with asyncio.timeout(timeout), group.watch() as changes:
            async for state in changes:
                role = state.members().get(agent_id)
                if role in INVITES and role is not None:
                    return role.removesuffix("Invite")
    except TimeoutError:
        needs = "an invite that is not revoked: ask for a new one"
        raise NotPermitted(group.id, group=group.id, role=group.my_role, act="join", needs=needs) from None
    raise AssertionError("a watch ended before its block")
