"""Manifest of the contract `kubernetes-sentinel.v1`.

Each kind of object has a permission to read and one to manage; operators have others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reside.model.constants import SENTINEL_CONTRACT
from reside.model.kinds import PERMITTED
from reside.model.manifest import ContractManifest, ContractPermission, DisplayText
from reside.model.sentinel_data import CONFIRM, MANAGE_STATE, READ_LOGS, REASSIGN

if TYPE_CHECKING:
    from reside.model.kinds import Kind


def _pair(kind: Kind) -> dict[str, ContractPermission]:
    return {
        kind.read: _permission(f"Read every {kind.kind}", f"See every {kind.kind} of the cluster as it is live."),
        kind.manage: _permission(f"Manage every {kind.kind}", f"Declare objects of kind {kind.kind}, within policy."),
    }


def _permission(title: str, description: str) -> ContractPermission:
    return ContractPermission(display_info={"en": DisplayText(title=title, description=description)})


CONTRACT: Final = ContractManifest(
    type="contract",
    identity=SENTINEL_CONTRACT,
    display_info={
        "en": DisplayText(
            title="Kubernetes Sentinel",
            description="Applies declared Kubernetes objects and reports what is live.",
        )
    },
    permissions={name: permission for kind in PERMITTED for name, permission in _pair(kind).items()}
    | {
        CONFIRM: _permission("Confirm deletions", "Confirm that objects which are in no stack are deleted."),
        REASSIGN: _permission("Reassign stacks", "Give stacks, with their secret values, to another account."),
        MANAGE_STATE: _permission("Manage states", "Export, import and remove what Pulumi stores of stacks."),
        READ_LOGS: _permission("Read logs", "Read what the pods of every replica write to their logs."),
    },
)
"""It has permissions only, because clients declare stacks and read reports as data in Jazz."""
