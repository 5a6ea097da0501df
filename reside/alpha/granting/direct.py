"""Direct grants in Jazz: one map for each account, which only Alpha writes and the account itself can read.

The member `directGrants` of Alpha's root map lists these maps by account. A map has one member for each permission that
was ever granted to the account or asked for by it, so refusals and revocations are remembered, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reside.alpha.records import parse
from reside.jazz import AccountId, InvalidArgument, ValueNotFound, WrongKind
from reside.model.entities import DirectGrant
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.alpha.data import AlphaData
    from reside.jazz import CoMap


async def read_all(data: AlphaData, account: str) -> dict[str, DirectGrant]:
    """Return the direct grants of an account by key, in any status."""
    co_id = data.direct_grants.get(account)
    if co_id is None:
        return {}
    found = await data.node.load_map(co_id)
    return {key: parse(DirectGrant, found[key], f"{key} in {co_id}") for key in found}


async def write(data: AlphaData, account: str, *grants: DirectGrant) -> None:
    """Write direct grants of an account. The caller holds Alpha's lock.

    Raises:
        InvalidInput: the account does not exist.
    """
    co_id = data.direct_grants.get(account)
    found = await _make(data, account) if co_id is None else await data.node.load_map(co_id)
    documents = {grant.key: grant.document() for grant in grants}
    found.update({key: document for key, document in documents.items() if found.get(key) != document})
    if co_id is None:
        data.direct_grants.set(account, found.id)


async def check_exists(data: AlphaData, account: str) -> None:
    """Check that an account exists, so that it can become a member of groups.

    Raises:
        InvalidInput: it does not exist, or its id is malformed.
    """
    try:
        await data.node.load_account(AccountId(account))
    except (ValueNotFound, WrongKind, InvalidArgument) as error:
        raise InvalidInput(
            f"account {account} can't be found in this cluster: its owner must connect once, for example with "
            f"`reside replica list` ({error})"
        ) from None


async def _make(data: AlphaData, account: str) -> CoMap:
    group = data.node.create_group(f"direct grants of {account}")
    await group.extend(data.permissions_group, "reader")
    if account != data.node.account_id:
        await group.add_member(AccountId(account), "reader")
    return group.create_map()
