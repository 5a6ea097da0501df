"""The contract `alpha.v1` as a manifest: the label of its image, and what Alpha implements."""

from __future__ import annotations

from typing import Final

from reside.model.alpha_contract import (
    ABORT_CANARY,
    APPROVE_LOAD_REQUEST,
    APPROVE_PERMISSION,
    APPROVE_REQUESTS,
    CHANGE_OWNER,
    CLAIM_SUPER_ADMIN,
    CREATE_LOAD_REQUEST,
    CREATE_REQUESTS,
    DELETE_REPLICA,
    DISABLE_REPLICA,
    ENABLE_REPLICA,
    EXPLAIN_PERMISSION,
    GRANT_PERMISSION,
    MANAGE_BLOCKS,
    MANAGE_PERMISSIONS,
    MANAGE_REPLICAS,
    PLACE_REPLICA,
    PREVIEW_DELETION,
    PROMOTE_CANARY,
    READ_REPLICAS,
    READ_REQUESTS,
    REFRESH_REPLICA,
    REJECT_LOAD_REQUEST,
    REJECT_PERMISSION,
    REQUEST_PERMISSION,
    REVOKE_PERMISSION,
    SCALE_REPLICA,
)
from reside.model.constants import ALPHA_CONTRACT, SENTINEL_CONTRACT
from reside.model.kinds import PERMITTED
from reside.model.manifest import ContractManifest, ContractMethod, ContractPermission, DisplayText
from reside.model.sentinel_data import CONFIRM, MANAGE_STATE, READ_LOGS, REASSIGN


def _text(title: str) -> dict[str, DisplayText]:
    return {"en": DisplayText(title=title)}


CONTRACT: Final = ContractManifest(
    type="contract",
    identity=ALPHA_CONTRACT,
    display_info={
        "en": DisplayText(
            title="Alpha", description="Creates, versions and watches replicas, and hands out permissions."
        )
    },
    permissions={
        READ_REPLICAS: ContractPermission(display_info=_text("Read every replica")),
        MANAGE_REPLICAS: ContractPermission(display_info=_text("Enable, disable and place every replica")),
        CREATE_REQUESTS: ContractPermission(display_info=_text("Create load requests")),
        READ_REQUESTS: ContractPermission(display_info=_text("Read every load request")),
        APPROVE_REQUESTS: ContractPermission(display_info=_text("Approve and reject load requests")),
        MANAGE_BLOCKS: ContractPermission(display_info=_text("Write every replica control block")),
        MANAGE_PERMISSIONS: ContractPermission(display_info=_text("Grant and revoke every permission")),
    },
    methods={
        CREATE_LOAD_REQUEST: ContractMethod(display_info=_text("Create a load request")),
        APPROVE_LOAD_REQUEST: ContractMethod(display_info=_text("Approve a load request at a previewed revision")),
        REJECT_LOAD_REQUEST: ContractMethod(display_info=_text("Reject a load request")),
        CLAIM_SUPER_ADMIN: ContractMethod(display_info=_text("Become super admin with the one-time code")),
        ENABLE_REPLICA: ContractMethod(display_info=_text("Enable a replica")),
        DISABLE_REPLICA: ContractMethod(display_info=_text("Disable a replica, which stops its pods")),
        PLACE_REPLICA: ContractMethod(display_info=_text("Run a replica on the nodes of a placement group")),
        SCALE_REPLICA: ContractMethod(display_info=_text("Run a replica with a number of pods")),
        CHANGE_OWNER: ContractMethod(display_info=_text("Give a replica to another owner")),
        REFRESH_REPLICA: ContractMethod(display_info=_text("Roll out the current pod template of a replica")),
        PROMOTE_CANARY: ContractMethod(display_info=_text("Make the canary of a replica the current version")),
        ABORT_CANARY: ContractMethod(display_info=_text("Take the canary of a replica away")),
        PREVIEW_DELETION: ContractMethod(display_info=_text("Preview the deletion of a replica")),
        DELETE_REPLICA: ContractMethod(display_info=_text("Delete a replica")),
        GRANT_PERMISSION: ContractMethod(display_info=_text("Grant a permission to an account")),
        REVOKE_PERMISSION: ContractMethod(display_info=_text("Revoke a permission that was granted to an account")),
        EXPLAIN_PERMISSION: ContractMethod(display_info=_text("Explain why an account has a permission or lacks it")),
        REQUEST_PERMISSION: ContractMethod(display_info=_text("Ask for a permission")),
        APPROVE_PERMISSION: ContractMethod(display_info=_text("Grant a permission that a replica has asked for")),
        REJECT_PERMISSION: ContractMethod(display_info=_text("Refuse a permission that a replica has asked for")),
    },
)


def _sentinel() -> ContractManifest:
    permissions = {
        name: ContractPermission(display_info=_text(f"{verb} {kind.permission}s"))
        for kind in PERMITTED
        for verb, name in (("Read", kind.read), ("Declare", kind.manage))
    }
    permissions[CONFIRM] = ContractPermission(display_info=_text("Confirm deletions"))
    permissions[MANAGE_STATE] = ContractPermission(display_info=_text("Export, import and remove states"))
    permissions[READ_LOGS] = ContractPermission(display_info=_text("Read logs of pods"))
    permissions[REASSIGN] = ContractPermission(display_info=_text("Give stacks to another account"))
    return ContractManifest(type="contract", identity=SENTINEL_CONTRACT, permissions=permissions)


PACKAGED: Final = {ALPHA_CONTRACT: CONTRACT, SENTINEL_CONTRACT: _sentinel()}
"""The platform's own contracts, for a cluster whose registry does not have their images."""


def packaged(identity: str) -> ContractManifest | None:
    """Return the platform's own contract with this identity."""
    return next((found for each in PACKAGED.values() if (found := each.resolved()).identity == identity), None)
