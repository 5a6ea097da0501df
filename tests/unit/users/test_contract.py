"""The user manager's manifests, and the names in code and on the wire, agree."""

from __future__ import annotations

import runpy
from pathlib import Path

import reside.users.contract as names
from reside.build.source import read_source
from reside.model.alpha_contract import MANAGE_BLOCKS, READ_REPLICAS
from reside.model.constants import ALPHA_CONTRACT
from reside.model.manifest import ContractManifest, ReplicaManifest

FOLDER = Path(__file__).parents[3] / "replicas" / "user-manager"


def contract() -> ContractManifest:
    manifest = read_source(FOLDER / "user-manager.v1", "latest").manifest
    assert isinstance(manifest, ContractManifest)
    return manifest


def test_the_contract_has_the_names_of_the_code() -> None:
    assert contract().identity == names.USER_MANAGER_CONTRACT
    assert set(contract().permissions) == {names.READ_USERS, names.MANAGE_USERS}


def test_every_method_of_the_contract_has_a_handler_in_the_program() -> None:
    declared = runpy.run_path(str(FOLDER / "main.py"))["user_manager"].declaration
    assert {name for _, name in declared.methods} == set(contract().methods)


def test_the_image_contains_its_program_and_its_contract() -> None:
    source = read_source(FOLDER, "latest")
    assert {"main.py", "replica.yaml", "user-manager.v1/contract.yaml"} <= set(source.files())


def test_it_requires_what_it_needs_of_alpha_and_nothing_else() -> None:
    manifest = read_source(FOLDER, "latest").manifest
    assert isinstance(manifest, ReplicaManifest)
    assert manifest.identity == names.USER_MANAGER_IDENTITY
    assert [i.identity for i in manifest.implementations.values()] == [names.USER_MANAGER_CONTRACT]
    (requirement,) = manifest.requirements.values()
    assert requirement.identity == ALPHA_CONTRACT
    assert {permission.name for permission in requirement.permissions} == {MANAGE_BLOCKS, READ_REPLICAS}
