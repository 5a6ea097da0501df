"""One RPC call, as its handler gets it: the caller, the body, and the permissions of the caller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reside.model.errors import NotAllowed
from reside.model.permissions import PermissionRef

if TYPE_CHECKING:
    from reside.jazz import AccountId
    from reside.replica.context import Context


@dataclass(frozen=True)
class Call:
    """An authenticated call of one method.

    Permissions are those of the called contract that are in force: `expected` and `current` of this replica's control
    block both grant them. So an entry that is only expected, or is revoked, grants nothing.
    """

    context: Context
    account: AccountId
    """The caller, authenticated by its token."""
    contract: str
    """Identity of the called contract."""
    method: str
    body: dict[str, Any] = field(repr=False)
    """The call's JSON object. It is not logged, since it may contain a secret."""

    def has(self, permission: str, instance_id: str | None = None) -> bool:
        """Return whether the caller has this permission now."""
        return self.context.rcb.is_granted(self._ref(permission, instance_id))

    def require(self, permission: str, instance_id: str | None = None) -> None:
        """Raise unless the caller has this permission.

        Raises:
            NotAllowed: the caller lacks the permission, which the message names.
        """
        if not self.has(permission, instance_id):
            of = f" for {instance_id}" if instance_id is not None else ""
            raise NotAllowed(
                f"{self.method} needs the permission {permission}{of} of {self.contract}, "
                f"which {self.account} was not granted by {self.context.name}"
            )

    def params(self, permission: str, instance_id: str | None = None) -> dict[str, Any]:
        """Return the params with which the permission was granted to the caller.

        Raises:
            NotAllowed: the permission is not granted.
        """
        self.require(permission, instance_id)
        entry = self.context.rcb.find(self._ref(permission, instance_id))
        return dict(entry.expected.params) if entry is not None else {}

    def _ref(self, permission: str, instance_id: str | None) -> PermissionRef:
        return PermissionRef(self.account, self.contract, permission, instance_id)
