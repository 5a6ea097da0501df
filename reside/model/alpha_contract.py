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

READ_REPLICAS: Final = "replica:read:all"
MANAGE_REPLICAS: Final = "replica:manage:all"
CREATE_REQUESTS: Final = "load-request:create"
READ_REQUESTS: Final = "load-request:read:all"
APPROVE_REQUESTS: Final = "load-request:approve"
MANAGE_BLOCKS: Final = "rcb:manage:all"

SUPER_ADMIN_PERMISSIONS: Final = (READ_REPLICAS, MANAGE_REPLICAS, CREATE_REQUESTS, READ_REQUESTS, APPROVE_REQUESTS)
"""What the super admin gets. `rcb:manage:all` is not part of it."""

ROOT_NAME: Final = "alpha.v1"
"""Unique name of the data map, which is the root map of Alpha's data."""

SUPER_ADMIN_ACCOUNT: Final = "superAdminAccount"
"""Account id of the super admin, once claimed."""
REPLICAS: Final = "replicas"
CONTRACTS: Final = "contracts"
LOAD_REQUESTS: Final = "loadRequests"
OPEN_REQUESTS: Final = "openRequests"
"""A map of the load requests that are not finished: id → id of the request's map."""
CONTROL_BLOCKS: Final = "controlBlocks"

REPLICAS_GROUP: Final = "replicasGroup"
LOAD_REQUESTS_GROUP: Final = "loadRequestsGroup"
STACKS_GROUP: Final = "stacksGroup"
SECRETS_GROUP: Final = "secretsGroup"
BLOCK_MANAGERS_GROUP: Final = "rcbManageGroup"
REPLICA_MANAGERS_GROUP: Final = "replicaManageGroup"
