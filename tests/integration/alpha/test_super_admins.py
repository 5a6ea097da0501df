"""Super admins: the first claim, further ones by grants, and recovery with the Secret as proof."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr
from support.alpha_cluster import CODE
from support.eventually import eventually

from reside.alpha.granting import claim, direct
from reside.model.alpha_contract import SUPER_ADMIN_PERMISSIONS
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID
from reside.model.errors import Conflict, NotAllowed

if TYPE_CHECKING:
    from support.alpha_cluster import AlphaCluster, Client

pytestmark = pytest.mark.anyio


async def test_a_super_admin_makes_another_one(cluster: AlphaCluster, admin: Client) -> None:
    other = await cluster.client("other")
    order = {"account": other.node.account_id, "replica": ALPHA_ID, "contract": ALPHA_CONTRACT, "reason": "holiday"}
    for name in SUPER_ADMIN_PERMISSIONS:
        await admin.call("grant-permission", order | {"permission": name})
    await eventually("the permissions", partial(has_all, other))
    await other.call(
        "revoke-permission", order | {"account": admin.node.account_id, "permission": "load-request:create"}
    )
    await eventually("the revocation", lambda: not admin.has("load-request:create"))


def has_all(client: Client) -> bool:
    return all(client.has(name) for name in SUPER_ADMIN_PERMISSIONS)


async def test_the_claim_is_recorded(cluster: AlphaCluster, admin: Client) -> None:
    found = (await direct.read_all(cluster.alpha.data, admin.node.account_id)).values()
    assert {grant.permission for grant in found} == set(SUPER_ADMIN_PERMISSIONS)
    assert {grant.decided and grant.decided.reason for grant in found} == {"claimed super admin access"}


async def test_a_lost_super_admin_is_replaced_with_a_new_code_of_the_secret(
    cluster: AlphaCluster, admin: Client
) -> None:
    alpha, other, late = cluster.alpha, await cluster.client("other"), await cluster.client("late")
    with pytest.raises(Conflict, match="--recover"):
        await other.call("claim-super-admin", {"code": CODE})
    code = SecretStr("recovery-code")
    with pytest.raises(NotAllowed):
        await claim.claim(alpha, other.node.account_id, "recovery-other", code)
    await claim.claim(alpha, other.node.account_id, "recovery-code", code)
    await claim.claim(alpha, other.node.account_id, "recovery-code", code)  # again, after a lost answer
    await eventually("the permissions", partial(has_all, other))
    assert has_all(admin)  # until the new one revokes them
    for account in (late.node.account_id, admin.node.account_id):
        with pytest.raises(Conflict):
            await claim.claim(alpha, account, "recovery-code", code)
