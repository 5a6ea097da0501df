"""Open maps of the Sentinel's data for an account that needs a permission on the Sentinel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.jazz import JazzError
from reside.model.constants import SENTINEL_CONTRACT, SENTINEL_NAME
from reside.model.errors import NotAllowed, NotReady
from reside.replica.profile import load_profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reside.jazz import AccountId, CoMap, Node


async def open_maps(
    node: Node, sentinel: AccountId, members: Sequence[str], permission: str, *, writes: bool = False
) -> list[CoMap]:
    """Return the maps that members of the Sentinel's root map name.

    Args:
        node: the account's node.
        sentinel: the Sentinel's account.
        members: the members.
        permission: the permission that the account needs; the error says how to get it.
        writes: whether the account must be a writer of the last one.

    Raises:
        NotAllowed: this account lacks the permission.
        NotReady: the Sentinel has not published these maps yet, or is of an earlier release.
    """
    profile = await load_profile(node, sentinel)
    root = await node.load_map(str(profile.contracts[SENTINEL_CONTRACT]))
    if absent := [member for member in members if member not in root]:
        raise NotReady(f"the Sentinel of this cluster has not published {', '.join(absent)} yet: update it")
    me = node.account_id
    missing = NotAllowed(f"{me} lacks {permission}: `reside permission grant {me} {SENTINEL_NAME} {permission}`")
    try:
        found = [await node.load_map(str(root[member])) for member in members]
    except JazzError:
        raise missing from None
    roles = [each.group.role_of(me) for each in found]
    if None in roles or (writes and roles[-1] != "writer"):
        raise missing
    return found
