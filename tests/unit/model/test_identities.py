"""Names of ReSide's own images, and their identities in a cluster with an identity repository of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.alpha.contract import CONTRACT, packaged
from reside.alpha.manifest import MANIFEST, sentinel_grants
from reside.model import identities
from reside.model.constants import (
    ALPHA_CONTRACT,
    ALPHA_ID,
    ALPHA_IDENTITY,
    OWN,
    SEED_ID,
    SEED_IDENTITY,
    SENTINEL_CONTRACT,
    SENTINEL_NAME,
)
from reside.model.endpoints import rpc_path
from reside.model.errors import InvalidManifest
from reside.model.identities import ByContract, repository_in, resolved, system_id
from reside.model.locations import located
from reside.model.permissions import PermissionRef
from reside.replica import Replica, load_contract
from reside.replica.contract_types import contract

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPOSITORY = "ghcr.io/acme/reside"
DIGEST = f"sha256:{'a' * 64}"


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """Let this process work with a cluster that has an identity repository of its own; return the repository."""
    before = identities.repository()
    identities.use(REPOSITORY)
    yield REPOSITORY
    identities.use(before)


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        (ALPHA_CONTRACT, f"{REPOSITORY}/contracts/alpha.v1"),
        (f"{OWN}/examples/greeter:v2", f"{REPOSITORY}/examples/greeter:v2"),
        (f"{OWN}/examples/greeter@{DIGEST}", f"{REPOSITORY}/examples/greeter@{DIGEST}"),
        (f"{REPOSITORY}/examples/greeter", f"{REPOSITORY}/examples/greeter"),
        (OWN, OWN),
        (f"{OWN}-other/greeter", f"{OWN}-other/greeter"),
        ("registry.reside.internal/mine/greeter", "registry.reside.internal/mine/greeter"),
        ("greeting", "greeting"),
    ],
)
def test_names_of_own_images_mean_those_of_the_cluster(elsewhere: str, name: str, identity: str) -> None:
    assert resolved(name) == identity
    assert resolved(resolved(name)) == identity


def test_without_a_repository_of_its_own_a_name_is_the_identity() -> None:
    assert resolved(ALPHA_CONTRACT) == ALPHA_CONTRACT
    assert located(ALPHA_CONTRACT, REPOSITORY) == f"{REPOSITORY}/contracts/alpha.v1"


def test_permissions_paths_and_manifests_have_resolved_identities(elsewhere: str) -> None:
    assert PermissionRef("co_z1", ALPHA_CONTRACT, "read").key == f"co_z1:{elsewhere}/contracts/alpha.v1:read"
    assert rpc_path("alpha", ALPHA_CONTRACT, "load") == f"/replicas/alpha/rpc/{elsewhere}/contracts/alpha.v1/load"
    manifest = MANIFEST.resolved()
    assert manifest.identity == f"{elsewhere}/replicas/alpha"
    assert [each.identity for each in manifest.implementations.values()] == [f"{elsewhere}/contracts/alpha.v1"]
    assert manifest.requirements[SENTINEL_NAME].identity == f"{elsewhere}/contracts/kubernetes-sentinel.v1"
    assert manifest.requirements[SENTINEL_NAME].permissions == MANIFEST.requirements[SENTINEL_NAME].permissions
    assert {ref.contract for ref in sentinel_grants("co_z1")} == {resolved(SENTINEL_CONTRACT)}
    assert packaged(resolved(ALPHA_CONTRACT)) == CONTRACT.resolved()
    assert packaged(ALPHA_CONTRACT) is None, "no identity in this cluster"


def test_a_replica_declares_its_contracts_by_their_names_in_code(elsewhere: str) -> None:
    replica = Replica(CONTRACT)

    @replica.method(ALPHA_CONTRACT, "enable-replica")
    async def enable(call: object) -> None:
        """Do nothing."""

    replica.permission(CONTRACT.identity, "replica:read:all")
    identity = resolved(ALPHA_CONTRACT)
    assert list(replica.declaration.contracts) == [identity]
    assert list(replica.declaration.methods) == [(identity, "enable-replica")]
    assert list(replica.declaration.permissions) == [(identity, "replica:read:all")]


def test_data_of_contracts_is_found_by_their_names_in_code(elsewhere: str) -> None:
    data = ByContract({resolved(ALPHA_CONTRACT): 1})
    data["registry.example/contracts/other.v1"] = 2
    for name in (ALPHA_CONTRACT, resolved(ALPHA_CONTRACT)):
        assert (data[name], data.get(name), name in data) == (1, 1, True)
    assert list(data) == [resolved(ALPHA_CONTRACT), "registry.example/contracts/other.v1"]
    for missing in (SENTINEL_CONTRACT, "registry.example/contracts/missing.v1"):
        assert (data.get(missing), missing in data) == (None, False)
        with pytest.raises(KeyError):
            data[missing]


def test_contracts_of_code_have_their_identities_in_the_cluster(elsewhere: str, tmp_path: Path) -> None:
    """So code may compare the contract of a call or a permission with that of its own."""
    (tmp_path / "contract.yaml").write_text(f"identity: {ALPHA_CONTRACT}\n")
    assert load_contract(tmp_path / "contract.yaml").identity == resolved(ALPHA_CONTRACT)
    assert contract({"identity": ALPHA_CONTRACT}).identity == resolved(ALPHA_CONTRACT)


def test_an_identity_that_becomes_too_long_is_refused() -> None:
    manifest = MANIFEST.model_copy(update={"identity": f"{OWN}/{'a' * 100}"})
    before = identities.repository()
    identities.use(f"ghcr.io/{'b' * 192}")
    try:
        with pytest.raises(InvalidManifest, match="more than 255 characters: choose a shorter name"):
            manifest.resolved()
    finally:
        identities.use(before)


def test_system_replicas_are_known_by_their_identities_alone(elsewhere: str) -> None:
    assert system_id(f"{elsewhere}/replicas/alpha") == ALPHA_ID
    assert system_id(f"{elsewhere}/replicas/seed") == SEED_ID
    assert system_id(f"{elsewhere}/replicas/other") is None
    assert system_id(ALPHA_IDENTITY) is None


def test_system_replicas_have_the_names_of_code_by_default() -> None:
    assert (system_id(ALPHA_IDENTITY), system_id(SEED_IDENTITY)) == (ALPHA_ID, SEED_ID)
    assert system_id(f"{REPOSITORY}/replicas/alpha") is None


def test_an_identity_under_the_repository_is_the_place_of_its_images(elsewhere: str) -> None:
    for name in (f"{OWN}/examples/greeter@{DIGEST}", f"{elsewhere}/examples/greeter@{DIGEST}"):
        assert located(resolved(name), elsewhere) == f"{elsewhere}/examples/greeter@{DIGEST}"
    assert located(f"{elsewhere}/team/bot", elsewhere) == f"{elsewhere}/team/bot"


def test_a_client_finds_the_repository_in_the_identities_of_alphas_contracts() -> None:
    assert repository_in([f"{REPOSITORY}/contracts/alpha.v1"], ALPHA_CONTRACT) == REPOSITORY
    assert repository_in([ALPHA_CONTRACT], ALPHA_CONTRACT) == OWN
    assert repository_in(["registry.example/contracts/greeting.v1"], ALPHA_CONTRACT) is None
