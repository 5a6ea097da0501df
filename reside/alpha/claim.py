"""The super admin: the first account that claims it with the one-time code (docs/model.md, section 4)."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from reside.alpha import control_blocks
from reside.model.alpha_contract import SUPER_ADMIN_ACCOUNT, SUPER_ADMIN_PERMISSIONS
from reside.model.constants import ALPHA_CONTRACT
from reside.model.errors import Conflict, NotAllowed, NotReady
from reside.model.permissions import Grant, PermissionRef

if TYPE_CHECKING:
    from pydantic import SecretStr

    from reside.alpha.state import Alpha


def super_admin_grants(account: str) -> dict[PermissionRef, Grant]:
    """Return the grants of the super admin."""
    return {PermissionRef(account, ALPHA_CONTRACT, name): Grant(granted=True) for name in SUPER_ADMIN_PERMISSIONS}


async def claim(alpha: Alpha, account: str, code: str, expected: SecretStr | None) -> None:
    """Make `account` the super admin. The same account may claim again; it gets the grants that it lacks.

    Raises:
        NotReady: the cluster has no code.
        NotAllowed: the code is wrong.
        Conflict: another account is the super admin.
    """
    if expected is None:
        raise NotReady("super admin access can't be claimed: the Secret super-admin-claim has no code")
    if not hmac.compare_digest(code.encode(), expected.get_secret_value().encode()):
        raise NotAllowed("the code is wrong: read it from the Secret super-admin-claim in the cluster's namespace")
    async with alpha.transaction() as tx:
        root = await tx.load(alpha.data.root.id)
        holder = root.get(SUPER_ADMIN_ACCOUNT)
        if holder not in (None, account):
            raise Conflict(
                "super admin access has been claimed by another account: it can be claimed once for each cluster"
            )
        if holder is None:
            tx.stage(lambda: root.set(SUPER_ADMIN_ACCOUNT, account))
        block = alpha.context.rcb.id
        await tx.run_exclusively(lambda: control_blocks.add_expected(alpha.node, block, super_admin_grants(account)))
