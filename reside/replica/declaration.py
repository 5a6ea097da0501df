"""What a replica's code declares: which function does what. Plain data, without side effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reside.jazz import WritePolicy
from reside.model.constants import MADE_AT_TOLERANCE_MS
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.jazz import CoMap, Json
    from reside.model.manifest import ContractManifest
    from reside.model.permissions import Grant, PermissionRef
    from reside.replica.call import Call
    from reside.replica.context import Context

MethodHandler = Callable[["Call"], Awaitable["Json"]]
"""Answers one RPC call; what it returns is the answer's body."""
PermissionHandler = Callable[["Context", "PermissionRef", "Grant"], Awaitable[None]]
"""Carries out one change of a permission. It must be safe to run twice: a replica may die before noting that it ran."""
DataFactory = Callable[["Context"], Awaitable["CoMap"]]
"""Finds, or creates and migrates, the data map of a contract."""
MainFunction = Callable[["Context"], Awaitable[None]]
"""A replica's own code."""


@dataclass(frozen=True)
class PermissionHandlers:
    """What to do when a permission is granted, revoked, or its params changed; None: nothing to do.

    Without `updated`, `granted` runs again with the new params.
    """

    granted: PermissionHandler | None = None
    revoked: PermissionHandler | None = None
    updated: PermissionHandler | None = None


NO_HANDLERS = PermissionHandlers()

STRICT_WRITES: Final = WritePolicy(refuse_after_removal=True, max_ahead_ms=MADE_AT_TOLERANCE_MS, remember=True)
"""What Alpha and the Sentinel refuse: who lost a right can't date a write back, nor a fast clock win for ever."""


@dataclass
class Declaration:
    """Everything that one replica declares; filled by `Replica`'s decorators at import, read at start."""

    contracts: dict[str, ContractManifest]
    methods: dict[tuple[str, str], MethodHandler] = field(default_factory=dict)
    permissions: dict[tuple[str, str], PermissionHandlers] = field(default_factory=dict)
    data: dict[str, DataFactory] = field(default_factory=dict)
    main: MainFunction | None = None
    writes: WritePolicy | None = None

    def contract(self, identity: str) -> ContractManifest:
        """The implemented contract of this identity.

        Raises:
            InvalidInput: the replica does not implement it.
        """
        try:
            return self.contracts[identity]
        except KeyError:
            raise InvalidInput(
                f"contract {identity} is not implemented here: hand its manifest to Replica(...)"
            ) from None
