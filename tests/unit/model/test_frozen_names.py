"""Names that stand in clusters, images and data: changing one would orphan what exists."""

from __future__ import annotations

from reside.model import constants, lookup
from reside.model.kinds import KINDS

FROZEN = {
    "MANIFEST_LABEL": "io.reside.manifest",
    "FIELD_MANAGER": "kubernetes-sentinel",
    "MANAGED_BY_LABEL": "app.kubernetes.io/managed-by",
    "REPLICA_LABEL": "reside.io/replica",
    "VERSION_LABEL": "reside.io/version",
    "STACK_LABEL": "reside.io/stack",
    "PLACEMENT_GROUP_LABEL": "reside.io/placement-group",
    "SECRET_REFERENCES_ANNOTATION": "reside.io/secret-references",
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
    "SENTINEL_SERVICE_ACCOUNT": "kubernetes-sentinel",
    "SENTINEL_VOLUME_CLAIM": "kubernetes-sentinel",
    "TEARDOWN_MARKER": "ConfigMap/reside-teardown",
    "PROVIDER_VERSION": "4.25.0",
    "SEED_ID": 0,
    "ALPHA_ID": 1,
    "SENTINEL_ID": 2,
    "FIRST_FREE_ID": 3,
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
        "rcb.by-id.6",
        "granted-permissions:for-account:co_z",
    ]


def test_every_kind_of_the_model_has_its_permissions() -> None:
    assert len(KINDS) == 12
    assert {kind.manage for kind in KINDS} >= {"deployment:manage:all", "persistent-volume-claim:manage:all"}
