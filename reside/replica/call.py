"""One RPC call as its handler sees it: who calls, what with, and what the caller may do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.model.errors import NotAllowed
from reside.model.permissions import PermissionRef, is_granted

if TYPE_CHECKING:
    from reside.jazz import AccountId
    from reside.replica.context import Context


@dataclass(frozen=True)
class Call:
    """An authenticated call of one method.

    Permissions are those of the called contract, as this replica itself has granted them: `current` in its own
    control block. That a key stands there grants nothing.
    """

    context: Context
    account: AccountId
    """The caller, proven by its token."""
    contract: str
    """Identity of the called contract."""
    method: str
    body: dict[str, Any] = field(repr=False)
    """The call's JSON object; not shown in logs, since it may hold a secret."""

    def has(self, permission: str, instance_id: str | None = None) -> bool:
        """Whether the caller has this permission now."""
        return is_granted(self.context.rcb.permissions(), self._ref(permission, instance_id))

    def require(self, permission: str, instance_id: str | None = None) -> None:
        """Go on only if the caller has this permission.

        Raises:
            NotAllowed: it has not; the message names the permission.
        """
        if not self.has(permission, instance_id):
            of = f" for {instance_id}" if instance_id is not None else ""
            raise NotAllowed(
                f"{self.method} needs the permission {permission}{of} of {self.contract}, "
                f"which {self.account} was not granted by {self.context.name}"
            )

    def params(self, permission: str, instance_id: str | None = None) -> dict[str, Any]:
        """The params with which the permission was granted to the caller.

        Raises:
            NotAllowed: the permission is not granted.
        """
        self.require(permission, instance_id)
        entry = self.context.rcb.find(self._ref(permission, instance_id))
        return dict(entry.current.params) if entry is not None and entry.current is not None else {}

    def _ref(self, permission: str, instance_id: str | None) -> PermissionRef:
        return PermissionRef(self.account, self.contract, permission, instance_id)
