"""Names of the contract `alpha.v1`: its methods, its permissions, and the members of its data map.

Alpha implements them; the CLI, the seed and the tests use them. docs/model.md, section 3, describes the
members. These names are on the wire and never change; a test freezes them.
"""

from __future__ import annotations

from typing import Final

CREATE_LOAD_REQUEST: Final = "create-load-request"
APPROVE_LOAD_REQUEST: Final = "approve-load-request"
REJECT_LOAD_REQUEST: Final = "reject-load-request"
CLAIM_SUPER_ADMIN: Final = "claim-super-admin"
ENABLE_REPLICA: Final = "enable-replica"
DISABLE_REPLICA: Final = "disable-replica"
PLACE_REPLICA: Final = "place-replica"
SCALE_REPLICA: Final = "scale-replica"
CHANGE_OWNER: Final = "change-owner"
REFRESH_REPLICA: Final = "refresh-replica"
PROMOTE_CANARY: Final = "promote-canary"
ABORT_CANARY: Final = "abort-canary"
PREVIEW_DELETION: Final = "preview-deletion"
DELETE_REPLICA: Final = "delete-replica"
GRANT_PERMISSION: Final = "grant-permission"
REVOKE_PERMISSION: Final = "revoke-permission"
EXPLAIN_PERMISSION: Final = "explain-permission"
REQUEST_PERMISSION: Final = "request-permission"
APPROVE_PERMISSION: Final = "approve-permission"
REJECT_PERMISSION: Final = "reject-permission"

READ_REPLICAS: Final = "replica:read:all"
MANAGE_REPLICAS: Final = "replica:manage:all"
CREATE_REQUESTS: Final = "load-request:create"
READ_REQUESTS: Final = "load-request:read:all"
APPROVE_REQUESTS: Final = "load-request:approve"
MANAGE_BLOCKS: Final = "rcb:manage:all"
MANAGE_PERMISSIONS: Final = "permission:manage:all"
"""Grant and revoke any permission of any replica. Its holders can grant themselves all other permissions."""

SUPER_ADMIN_PERMISSIONS: Final = (
    READ_REPLICAS,
    MANAGE_REPLICAS,
    CREATE_REQUESTS,
    READ_REQUESTS,
    APPROVE_REQUESTS,
    MANAGE_PERMISSIONS,
)
"""What the super admin gets. `rcb:manage:all` is not part of it."""

ROOT_NAME: Final = "alpha.v1"
"""Unique name of the data map, which is the root map of Alpha's data."""

SUPER_ADMIN_ACCOUNT: Final = "superAdminAccount"
"""Id of the account that has claimed super admin access last."""
USED_RECOVERY_CODES: Final = "usedRecoveryCodes"
"""SHA-256 digests of the recovery codes with which super admin access was claimed."""
REPLICAS: Final = "replicas"
CONTRACTS: Final = "contracts"
LOAD_REQUESTS: Final = "loadRequests"
"""A list of the load requests of an earlier release; a leader moves them to `finishedRequests`."""
OPEN_REQUESTS: Final = "openRequests"
"""A map of the load requests that are not finished: id → id of the request's map."""
FINISHED_REQUESTS: Final = "finishedRequests"
"""A map of the finished load requests that are kept: id → `{request, of, at}` (`reside.alpha.finished_requests`)."""
CONTROL_BLOCKS: Final = "controlBlocks"
REPLICAS_BY_ACCOUNT: Final = "replicasByAccount"
"""A map: account of a replica → id of the replica."""
CLUSTER_SETTINGS: Final = "clusterSettings"
"""A map with the settings of the cluster (`reside.model.cluster`)."""
IDENTITY_REPOSITORY: Final = "identityRepository"
"""The identity repository (`reside.model.identities`), if it is not `OWN`. It is the first content of the data."""
DEPENDANTS_LISTED: Final = "dependantsListed"
"""True once the look-ups `dependants.of-replica.N` are complete, which an upgrade of an earlier release makes them."""
DIRECT_GRANTS: Final = "directGrants"
"""A map: account → id of the map of its direct grants (`reside.model.entities.DirectGrant`)."""

REPLICAS_GROUP: Final = "replicasGroup"
LOAD_REQUESTS_GROUP: Final = "loadRequestsGroup"
STACKS_GROUP: Final = "stacksGroup"
SECRETS_GROUP: Final = "secretsGroup"
BLOCK_MANAGERS_GROUP: Final = "rcbManageGroup"
REPLICA_MANAGERS_GROUP: Final = "replicaManageGroup"
PERMISSION_MANAGERS_GROUP: Final = "permissionManageGroup"
