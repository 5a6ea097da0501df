"""Names and numbers that clusters, images and stored data contain. They must not change; a test freezes them."""

from __future__ import annotations

from typing import Final

MANIFEST_LABEL: Final = "io.reside.manifest"

FIELD_MANAGER: Final = "kubernetes-sentinel"
YIELDED_MANAGER: Final = "reside-yielded"
"""Field manager of what people wrote to fields that an object leaves to others."""
OPERATOR_MANAGER: Final = "reside-cli"
"""Field manager of what the command `reside` writes for an operator."""
RESTORE_MARKER: Final = "reside-restore"
"""Name of the ConfigMap that marks an unfinished restore of a backup."""
RESTORE_LABEL: Final = "reside.io/restore"
"""Label of the pods that write the volumes of a restore."""
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
REPLICA_LABEL: Final = "reside.io/replica"
VERSION_LABEL: Final = "reside.io/version"
REPLICA_CONTAINER: Final = "replica"
"""Name of the container of a replica's pods."""
STACK_LABEL: Final = "reside.io/stack"
JOB_LABEL: Final = "batch.kubernetes.io/job-name"
"""Label with which Kubernetes marks the pods of a Job."""
PLACEMENT_GROUP_LABEL: Final = "reside.io/placement-group"
SECRET_REFERENCES_ANNOTATION: Final = "reside.io/secret-references"
KEEP_ANNOTATION: Final = "reside.io/keep"
"""With the value `true`, the Sentinel neither deletes nor replaces the object."""
REPLACE_ANNOTATION: Final = "reside.io/replace"
"""With the value `true`, an object is deleted and recreated for a change that Kubernetes does not allow."""
YIELD_ANNOTATION: Final = "reside.io/yield"
"""Names fields that the object leaves to others (reside/policy/yielded_fields.py)."""
STRICT_ANNOTATION: Final = "reside.io/strict"
"""With the value `true`, fields that other programs add to the object are removed."""

SEED_ID: Final = 0
ALPHA_ID: Final = 1
SENTINEL_ID: Final = 2
FIRST_FREE_ID: Final = 3

SEED_NAME: Final = "seed"
ALPHA_NAME: Final = "alpha"
SENTINEL_NAME: Final = "kubernetes-sentinel"
PLATFORM_STACK: Final = "platform"
JAZZ_NAME: Final = "jazz"
ETCD_NAME: Final = "etcd"

CLAIM_SECRET: Final = "super-admin-claim"
CLAIM_SECRET_KEY: Final = "code"
RECOVERY_PREFIX: Final = "recovery-"
"""A code with this prefix gives super admin access to a further account."""
ENGINE_SECRET: Final = "kubernetes-sentinel-engine"
ENGINE_SECRET_KEY: Final = "passphrase"
STORE_SECRET: Final = "kubernetes-sentinel-store"
"""Secret that an operator creates: its keys are environment variables of the Sentinel, the credentials of a store."""
REGISTRY_SECRET: Final = "reside-registry"
"""Secret with the credentials of registries, of type `kubernetes.io/dockerconfigjson`; see `REGISTRY_SECRET_KEY`."""
REGISTRY_SECRET_KEY: Final = ".dockerconfigjson"
SENTINEL_SERVICE_ACCOUNT: Final = "kubernetes-sentinel"
SENTINEL_EVENTS_ROLE: Final = "kubernetes-sentinel-events"
SENTINEL_LOGS_ROLE: Final = "kubernetes-sentinel-logs"
SENTINEL_ROUTES_ROLE: Final = "kubernetes-sentinel-routes"
SENTINEL_ROLES: Final = (SENTINEL_NAME, SENTINEL_EVENTS_ROLE, SENTINEL_LOGS_ROLE, SENTINEL_ROUTES_ROLE)
"""Names of all Roles that the Sentinel may have. It can't create one whose rights it does not have."""
SENTINEL_VOLUME_CLAIM: Final = "kubernetes-sentinel"

DOMAIN_CERTIFICATE: Final = "jazz-tls"
"""Secret with the certificate of the domain, which cert-manager makes for the Ingress of Jazz; all Ingresses use it."""

ACCOUNT_ID_KEY: Final = "accountId"
"""Key of a replica's Secret: the id of its Jazz account."""
AGENT_SECRET_KEY: Final = "agentSecret"
"""Key of a replica's Secret: the secret of its Jazz account."""
SENTINEL_STATE_DIR: Final = "/var/lib/reside"
"""Where the Sentinel's pod mounts its volume; the image of Python programs contains this folder."""
NONROOT_USER: Final = 65532
"""User and group of the platform's images; their volumes must belong to it."""

CLUSTER_RECORD: Final = "reside-cluster"
"""Name of the ConfigMap that says how the bootstrap went; it outlives the seed."""
TEARDOWN_MARKER: Final = "ConfigMap/reside-teardown"
"""While this object exists with the managed-by label, the Sentinel repairs, applies and deletes nothing."""

PROVIDER_VERSION: Final = "4.25.0"
"""Version of Pulumi's Kubernetes provider; `tools/pulumi-kubernetes` builds it."""

RESIDE_REGISTRY: Final = "registry.reside.internal"
OWN: Final = "registry.reside.internal/reside"
"""The repository of ReSide's own images, as code and manifests name it in every cluster (`reside.model.identities`)."""
ALPHA_CONTRACT: Final = "registry.reside.internal/reside/contracts/alpha.v1"
SENTINEL_CONTRACT: Final = "registry.reside.internal/reside/contracts/kubernetes-sentinel.v1"
ALPHA_IDENTITY: Final = "registry.reside.internal/reside/replicas/alpha"
SENTINEL_IDENTITY: Final = "registry.reside.internal/reside/replicas/kubernetes-sentinel"
SEED_IDENTITY: Final = "registry.reside.internal/reside/replicas/seed"

SYSTEM_IDS: Final = {SEED_IDENTITY: SEED_ID, ALPHA_IDENTITY: ALPHA_ID, SENTINEL_IDENTITY: SENTINEL_ID}

LISTEN_PORT: Final = 8080
SERVICE_PORT: Final = 80
JAZZ_PORT: Final = 4200
ETCD_PORT: Final = 2379
JAZZ_URL: Final = f"ws://{JAZZ_NAME}:{JAZZ_PORT}"
"""Address of Jazz for pods of the cluster."""
ETCD_URL: Final = f"http://{ETCD_NAME}:{ETCD_PORT}"
"""Address of etcd for pods of the cluster."""
ENV_PREFIX: Final = "RESIDE_"
"""A replica's settings are environment variables of this prefix and the name of the setting."""
MADE_AT_TOLERANCE_MS: Final = 60_000
"""Maximum time by which an edit in Jazz may be dated ahead of the reader's clock; readers ignore other edits."""
