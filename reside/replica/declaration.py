"""The declaration of a replica: its contracts and the functions that implement them. Plain data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reside.jazz import WritePolicy
from reside.model.constants import MADE_AT_TOLERANCE_MS
from reside.model.errors import InvalidInput
from reside.model.identities import resolved

if TYPE_CHECKING:
    from reside.jazz import CoMap, Credentials, Json
    from reside.locks import EtcdUser
    from reside.model.manifest import ContractManifest
    from reside.model.permissions import Grant, PermissionRef
    from reside.replica.call import Call
    from reside.replica.context import Context
    from reside.replica.migrations import Migration

MethodHandler = Callable[["Call"], Awaitable["Json"]]
"""Handles one RPC call; its return value is the body of the response."""
PermissionHandler = Callable[["Context", "PermissionRef", "Grant"], Awaitable[None]]
"""Carries out one change of a permission. It must be idempotent: a replica may crash before it stores the result."""
DataFactory = Callable[["Context"], Awaitable["CoMap"]]
"""Finds the data map of a contract, or creates it."""
LockUser = Callable[["Credentials"], "EtcdUser"]
"""Returns the user of etcd that a replica with these credentials is."""
MainFunction = Callable[["Context"], Awaitable[None]]
"""The replica's own code."""


@dataclass(frozen=True)
class PermissionHandlers:
    """Handlers for a permission that is granted or revoked, or whose params change; None: nothing to do.

    Without `updated`, `granted` is called with the new params.
    """

    granted: PermissionHandler | None = None
    revoked: PermissionHandler | None = None
    updated: PermissionHandler | None = None


NO_HANDLERS = PermissionHandlers()

STRICT_WRITES: Final = WritePolicy(refuse_after_removal=True, max_ahead_ms=MADE_AT_TOLERANCE_MS, remember=True)
"""Writes that every replica refuses by default: back-dated ones of removed members, and ones dated in the future."""


@dataclass
class Declaration:
    """Everything that one replica declares. `Replica`'s decorators fill it at import; it is read at start."""

    contracts: dict[str, ContractManifest]
    methods: dict[tuple[str, str], MethodHandler] = field(default_factory=dict)
    permissions: dict[tuple[str, str], PermissionHandlers] = field(default_factory=dict)
    data: dict[str, DataFactory] = field(default_factory=dict)
    migrations: dict[str, dict[int, Migration]] = field(default_factory=dict)
    main: MainFunction | None = None
    writes: WritePolicy | None = STRICT_WRITES
    lock_user: LockUser | None = None

    def implements(self, ref: PermissionRef) -> bool:
        """Return whether a contract of this replica has the permission."""
        contract = self.contracts.get(ref.contract)
        return contract is not None and ref.name in contract.permissions

    def contract(self, name: str) -> ContractManifest:
        """Return the implemented contract that a name means (`reside.model.identities`).

        Raises:
            InvalidInput: the replica does not implement it.
        """
        identity = resolved(name)
        try:
            return self.contracts[identity]
        except KeyError:
            raise InvalidInput(
                f"contract {identity} is not implemented by this replica: pass its manifest to Replica(...)"
            ) from None
