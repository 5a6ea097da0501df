"""The manifests that ReSide ships: those of its own replicas and of the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from reside.alpha.contract import PACKAGED
from reside.build.source import read_source
from reside.model.constants import ALPHA_CONTRACT, ALPHA_IDENTITY, SEED_IDENTITY, SENTINEL_CONTRACT, SENTINEL_IDENTITY
from reside.model.kinds import KINDS
from reside.model.manifest import ContractManifest, ReplicaManifest, parse_manifest

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(
    path.parent for path in (ROOT / "examples").glob("*/*/*.yaml") if path.stem in ("replica", "contract")
)


def shipped(name: str) -> ReplicaManifest:
    manifest = parse_manifest(yaml.safe_load((ROOT / "images" / name / "manifest.yaml").read_text()))
    assert isinstance(manifest, ReplicaManifest)
    return manifest


@pytest.mark.parametrize(
    ("name", "identity", "kind", "scalable"),
    [
        ("alpha", ALPHA_IDENTITY, "long-running", True),
        ("kubernetes-sentinel", SENTINEL_IDENTITY, "long-running", True),
        ("seed", SEED_IDENTITY, "oneshot", False),
    ],
)
def test_system_replicas_have_their_frozen_identity_and_info(
    name: str, identity: str, kind: str, scalable: bool
) -> None:
    manifest = shipped(name)
    info = manifest.info
    assert (manifest.identity, info.name, info.kind) == (identity, name, kind)
    assert (info.exclusive, info.scalable) == (True, scalable)


def test_alpha_requires_permissions_for_every_kind_that_a_stack_can_contain() -> None:
    alpha = shipped("alpha")
    assert [i.identity for i in alpha.implementations.values()] == [ALPHA_CONTRACT]
    (requirement,) = alpha.requirements.values()
    assert requirement.identity == SENTINEL_CONTRACT
    assert {permission.name for permission in requirement.permissions} == {kind.manage for kind in KINDS}
    assert {permission.name for permission in requirement.permissions} <= PACKAGED[SENTINEL_CONTRACT].permissions.keys()


def test_seed_and_sentinel_require_nothing() -> None:
    assert shipped("seed").requirements == shipped("kubernetes-sentinel").requirements == {}


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_every_example_has_a_valid_manifest_and_its_code(folder: Path) -> None:
    source = read_source(folder, "latest")
    if source.manifest.type == "replica":
        assert source.language is not None
        assert {"main.py", "main.ts"} & set(source.files())
        assert "replica.yaml" in source.files()


@pytest.mark.parametrize("name", ["greeter", "caller"])
def test_an_example_in_typescript_is_another_version_of_the_one_in_python(name: str) -> None:
    found = [read_source(ROOT / "examples" / folder / name, "latest") for folder in ("replicas", "typescript")]
    python, typescript = (source.manifest for source in found)
    assert isinstance(python, ReplicaManifest)
    assert isinstance(typescript, ReplicaManifest)
    assert [source.language for source in found] == ["python", "ts"]
    assert (python.identity, python.info) == (typescript.identity, typescript.info)
    assert (python.implementations, python.requirements) == (typescript.implementations, typescript.requirements)


def test_the_examples_fit_together() -> None:
    contract = read_source(ROOT / "examples/contracts/greeting.v1", "latest").manifest
    greeter, second, caller = (
        read_source(ROOT / "examples/replicas" / name, "latest").manifest
        for name in ("greeter", "greeter-v2", "caller")
    )
    assert isinstance(contract, ContractManifest)
    assert isinstance(greeter, ReplicaManifest)
    assert isinstance(second, ReplicaManifest)
    assert isinstance(caller, ReplicaManifest)
    assert (greeter.identity, greeter.info) == (second.identity, second.info)
    assert [i.identity for i in greeter.implementations.values()] == [contract.identity]
    (requirement,) = caller.requirements.values()
    assert requirement.identity == contract.identity
    assert {permission.name for permission in requirement.permissions} <= contract.permissions.keys()
    assert (greeter.info.scalable, caller.info.scalable) == (True, False)
