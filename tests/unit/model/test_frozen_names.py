"""Names used in clusters, images and data: a change would orphan what exists."""

from __future__ import annotations

from reside.locks.service import LEADER_PREFIX, PREFIX
from reside.model import alpha_contract, constants, endpoints, lookup
from reside.model.kinds import KINDS
from reside.replica.transactions import LOCK_PREFIX

FROZEN = {
    "MANIFEST_LABEL": "io.reside.manifest",
    "FIELD_MANAGER": "kubernetes-sentinel",
    "YIELDED_MANAGER": "reside-yielded",
    "MANAGED_BY_LABEL": "app.kubernetes.io/managed-by",
    "REPLICA_LABEL": "reside.io/replica",
    "VERSION_LABEL": "reside.io/version",
    "REPLICA_CONTAINER": "replica",
    "STACK_LABEL": "reside.io/stack",
    "PLACEMENT_GROUP_LABEL": "reside.io/placement-group",
    "SECRET_REFERENCES_ANNOTATION": "reside.io/secret-references",
    "KEEP_ANNOTATION": "reside.io/keep",
    "REPLACE_ANNOTATION": "reside.io/replace",
    "YIELD_ANNOTATION": "reside.io/yield",
    "STRICT_ANNOTATION": "reside.io/strict",
    "MADE_AT_TOLERANCE_MS": 60_000,
    "SEED_NAME": "seed",
    "ALPHA_NAME": "alpha",
    "SENTINEL_NAME": "kubernetes-sentinel",
    "PLATFORM_STACK": "platform",
    "JAZZ_NAME": "jazz",
    "ETCD_NAME": "etcd",
    "CLAIM_SECRET": "super-admin-claim",
    "CLAIM_SECRET_KEY": "code",
    "ENGINE_SECRET": "kubernetes-sentinel-engine",
    "ENGINE_SECRET_KEY": "passphrase",
    "STORE_SECRET": "kubernetes-sentinel-store",
    "REGISTRY_SECRET": "reside-registry",
    "REGISTRY_SECRET_KEY": ".dockerconfigjson",
    "SENTINEL_SERVICE_ACCOUNT": "kubernetes-sentinel",
    "SENTINEL_EVENTS_ROLE": "kubernetes-sentinel-events",
    "SENTINEL_ROUTES_ROLE": "kubernetes-sentinel-routes",
    "SENTINEL_LOGS_ROLE": "kubernetes-sentinel-logs",
    "DOMAIN_CERTIFICATE": "jazz-tls",
    "SENTINEL_VOLUME_CLAIM": "kubernetes-sentinel",
    "ACCOUNT_ID_KEY": "accountId",
    "AGENT_SECRET_KEY": "agentSecret",
    "SENTINEL_STATE_DIR": "/var/lib/reside",
    "NONROOT_USER": 65532,
    "RESIDE_REGISTRY": "registry.reside.internal",
    "ENV_PREFIX": "RESIDE_",
    "LISTEN_PORT": 8080,
    "SERVICE_PORT": 80,
    "JAZZ_PORT": 4200,
    "ETCD_PORT": 2379,
    "JAZZ_URL": "ws://jazz:4200",
    "ETCD_URL": "http://etcd:2379",
    "TEARDOWN_MARKER": "ConfigMap/reside-teardown",
    "PROVIDER_VERSION": "4.25.0",
    "SEED_ID": 0,
    "ALPHA_ID": 1,
    "SENTINEL_ID": 2,
    "FIRST_FREE_ID": 3,
}

FROZEN_IN_ALPHAS_CONTRACT = {
    "CREATE_LOAD_REQUEST": "create-load-request",
    "APPROVE_LOAD_REQUEST": "approve-load-request",
    "REJECT_LOAD_REQUEST": "reject-load-request",
    "CLAIM_SUPER_ADMIN": "claim-super-admin",
    "ENABLE_REPLICA": "enable-replica",
    "DISABLE_REPLICA": "disable-replica",
    "PLACE_REPLICA": "place-replica",
    "SCALE_REPLICA": "scale-replica",
    "CHANGE_OWNER": "change-owner",
    "REFRESH_REPLICA": "refresh-replica",
    "PROMOTE_CANARY": "promote-canary",
    "ABORT_CANARY": "abort-canary",
    "PREVIEW_DELETION": "preview-deletion",
    "DELETE_REPLICA": "delete-replica",
    "GRANT_PERMISSION": "grant-permission",
    "REVOKE_PERMISSION": "revoke-permission",
    "EXPLAIN_PERMISSION": "explain-permission",
    "REQUEST_PERMISSION": "request-permission",
    "APPROVE_PERMISSION": "approve-permission",
    "REJECT_PERMISSION": "reject-permission",
    "READ_REPLICAS": "replica:read:all",
    "MANAGE_REPLICAS": "replica:manage:all",
    "CREATE_REQUESTS": "load-request:create",
    "READ_REQUESTS": "load-request:read:all",
    "APPROVE_REQUESTS": "load-request:approve",
    "MANAGE_BLOCKS": "rcb:manage:all",
    "MANAGE_PERMISSIONS": "permission:manage:all",
    "SUPER_ADMIN_PERMISSIONS": (
        "replica:read:all",
        "replica:manage:all",
        "load-request:create",
        "load-request:read:all",
        "load-request:approve",
        "permission:manage:all",
    ),
    "ROOT_NAME": "alpha.v1",
    "SUPER_ADMIN_ACCOUNT": "superAdminAccount",
    "USED_RECOVERY_CODES": "usedRecoveryCodes",
    "REPLICAS": "replicas",
    "CONTRACTS": "contracts",
    "LOAD_REQUESTS": "loadRequests",
    "FINISHED_REQUESTS": "finishedRequests",
    "OPEN_REQUESTS": "openRequests",
    "CONTROL_BLOCKS": "controlBlocks",
    "REPLICAS_BY_ACCOUNT": "replicasByAccount",
    "CLUSTER_SETTINGS": "clusterSettings",
    "IDENTITY_REPOSITORY": "identityRepository",
    "DEPENDANTS_LISTED": "dependantsListed",
    "DIRECT_GRANTS": "directGrants",
    "REPLICAS_GROUP": "replicasGroup",
    "LOAD_REQUESTS_GROUP": "loadRequestsGroup",
    "STACKS_GROUP": "stacksGroup",
    "SECRETS_GROUP": "secretsGroup",
    "BLOCK_MANAGERS_GROUP": "rcbManageGroup",
    "REPLICA_MANAGERS_GROUP": "replicaManageGroup",
    "PERMISSION_MANAGERS_GROUP": "permissionManageGroup",
}


def test_constants_are_frozen() -> None:
    assert {name: getattr(constants, name) for name in FROZEN} == FROZEN


def test_lookup_names_are_frozen() -> None:
    names = [
        lookup.replica_by_id(1),
        lookup.replica_by_name("a"),
        lookup.replicas_by_identity("r/a"),
        lookup.replicas_by_contract(2),
        lookup.contract_by_id(1),
        lookup.contract_by_identity("r/c"),
        lookup.load_request_by_id(5),
        lookup.load_request_of_spec("co_z"),
        lookup.rcb_by_id(6),
        lookup.granted_permissions("co_z"),
    ]
    assert names == [
        "replica.by-id.1",
        "replica.by-name.a",
        "replica.by-identity.r/a",
        "replica.by-contract.2",
        "contract.by-id.1",
        "contract.by-identity.r/c",
        "load-request.by-id.5",
        "load-request.of-value.co_z",
        "rcb.by-id.6",
        "granted-permissions:for-account:co_z",
    ]


def test_members_of_lookups_are_frozen() -> None:
    names = (lookup.TARGET, lookup.VALUE, lookup.TARGETS, lookup.CLAIMANT)
    assert names == ("target", "value", "targets", "claimant")


def test_a_lookup_points_by_the_member_of_either_implementation() -> None:
    assert lookup.target_of(lookup.pointing_to("co_zA")) == "co_zA"
    assert lookup.target_of({"value": "co_zA"}) == "co_zA"
    assert lookup.target_of({"target": "co_zB", "value": "co_zA"}) == "co_zB"
    assert lookup.target_of({"target": None, "claimant": "x"}) is None


def test_names_of_alphas_contract_are_frozen() -> None:
    found = {name: value for name, value in vars(alpha_contract).items() if name.isupper()}
    assert found == FROZEN_IN_ALPHAS_CONTRACT


def test_paths_of_a_replica_are_frozen() -> None:
    assert (endpoints.LIVENESS_PATH, endpoints.READINESS_PATH) == ("/healthz", "/readyz")
    assert endpoints.rpc_path("greeter", "r.example/c.v1", "greet") == "/replicas/greeter/rpc/r.example/c.v1/greet"
    assert endpoints.account_path("greeter") == "/replicas/greeter/account"
    assert endpoints.replica_path("greeter") == "/replicas/greeter/"


def test_names_of_locks_are_frozen() -> None:
    assert (PREFIX, LEADER_PREFIX, LOCK_PREFIX) == ("reside/", "leader/", "transaction/")


def test_every_kind_of_the_model_has_its_permissions() -> None:
    assert len(KINDS) == 13
    assert {kind.manage for kind in KINDS} >= {"deployment:manage:all", "persistent-volume-claim:manage:all"}
