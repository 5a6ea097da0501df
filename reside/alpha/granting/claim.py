"""Super admins: accounts with all of Alpha's permissions that administrators need (docs/model.md, section 4).

The first account that sends the one-time code of the bootstrap becomes super admin. Super admins can make others with
`grant-permission`. To replace a lost super admin, an operator with write access to the Secret stores a recovery code
there, and claims with it. A recovery code can be used once.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING

from reside.alpha.granting.decide import Order, write_manual
from reside.model.alpha_contract import SUPER_ADMIN_ACCOUNT, SUPER_ADMIN_PERMISSIONS, USED_RECOVERY_CODES
from reside.model.constants import ALPHA_CONTRACT, ALPHA_ID, RECOVERY_PREFIX
from reside.model.errors import Conflict, NotAllowed, NotReady

if TYPE_CHECKING:
    from pydantic import SecretStr

    from reside.alpha.state import Alpha
    from reside.jazz import CoMap


def super_admin_orders(account: str) -> list[Order]:
    """Return the permissions of a super admin."""
    return [Order(account, ALPHA_ID, ALPHA_CONTRACT, name) for name in SUPER_ADMIN_PERMISSIONS]


async def claim(alpha: Alpha, account: str, code: str, expected: SecretStr | None) -> None:
    """Make `account` a super admin. The same account may claim again; it gets the grants that it lacks.

    Raises:
        NotReady: the cluster has no code.
        NotAllowed: the code is wrong.
        Conflict: another account is super admin, and the code is not a recovery code, or a used one.
    """
    if expected is None:
        raise NotReady("super admin access can't be claimed: the Secret super-admin-claim has no code")
    if not hmac.compare_digest(code.encode(), expected.get_secret_value().encode()):
        raise NotAllowed("the code is wrong: read it from the Secret super-admin-claim in the cluster's namespace")
    async with alpha.transaction() as tx:
        root = await tx.load(alpha.data.root.id)
        if root.get(SUPER_ADMIN_ACCOUNT) != account:
            used = _check_code(root, code)
            tx.stage(lambda: root.update({SUPER_ADMIN_ACCOUNT: account, USED_RECOVERY_CODES: used}))
        orders = super_admin_orders(account)
        await tx.run_exclusively(lambda: write_manual(alpha, account, orders, "claimed super admin access"))


def _check_code(root: CoMap, code: str) -> list[str]:
    """Return the digests of used recovery codes with that of this one; raise if the code may not be used (again)."""
    used = [str(item) for item in root.get(USED_RECOVERY_CODES) or []]
    if root.get(SUPER_ADMIN_ACCOUNT) is None:
        return used
    digest = hashlib.sha256(code.encode()).hexdigest()
    if not code.startswith(RECOVERY_PREFIX) or digest in used:
        raise Conflict(
            "super admin access has been claimed by another account, which can grant it to others; if its key is lost, "
            "run `reside cluster claim-super-admin-access --recover`"
        )
    return [*used, digest]
