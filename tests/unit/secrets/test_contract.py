"""The manifests of the replica *secret*, and the names in code and on the wire, agree; names and values have limits."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from pydantic import ValidationError

import reside.model.secret_contract as names
from reside.build.source import read_source
from reside.model.errors import InvalidInput, LoadRefused
from reside.model.manifest import ContractManifest, ReplicaManifest, RequiredPermission
from reside.model.permission_checks import check_permission
from reside.model.secret_contract import MAX_VALUE_BYTES, SecretState, SetSecret, check_name, check_value

FOLDER = Path(__file__).parents[3] / "replicas" / "secret"


def contract() -> ContractManifest:
    manifest = read_source(FOLDER / "secret.v1", "latest").manifest
    assert isinstance(manifest, ContractManifest)
    return manifest


def test_the_contract_has_the_names_of_the_code() -> None:
    assert contract().identity == names.SECRET_CONTRACT
    assert set(contract().permissions) == {names.READ_SECRET, names.WRITE_SECRET, names.MANAGE_SECRETS}


def test_every_method_of_the_contract_has_a_handler_in_the_program() -> None:
    declared = runpy.run_path(str(FOLDER / "main.py"))["secret"].declaration
    assert {name for _, name in declared.methods} == set(contract().methods)
    assert set(contract().methods) == {names.SET_SECRET, names.DELETE_SECRET, names.LIST_SECRETS}


def test_the_image_contains_its_program_and_its_contract_and_requires_nothing() -> None:
    source = read_source(FOLDER, "latest")
    assert {"main.py", "replica.yaml", "secret.v1/contract.yaml"} <= set(source.files())
    manifest = source.manifest
    assert isinstance(manifest, ReplicaManifest)
    assert (manifest.identity, manifest.info.exclusive) == (names.SECRET_IDENTITY, True)
    assert [i.identity for i in manifest.implementations.values()] == [names.SECRET_CONTRACT]
    assert manifest.requirements == {}


@pytest.mark.parametrize("permission", [names.READ_SECRET, names.WRITE_SECRET])
def test_a_permission_on_a_secret_names_the_secret(permission: str) -> None:
    asked = RequiredPermission(name=permission, instance_id="db-password")
    assert check_permission("it", asked, contract()) == "db-password"
    asked = RequiredPermission(name=permission, params={"name": "db-password"})  # as in a set of the user manager
    assert check_permission("it", asked, contract()) == "db-password"
    with pytest.raises(LoadRefused, match="needs an instance"):
        check_permission("it", RequiredPermission(name=permission), contract())


@pytest.mark.parametrize("name", ["a", "db-password", "db.password.v2", "0", "a" * 63])
def test_a_name_is_one_of_a_file_and_of_an_instance(name: str) -> None:
    assert check_name(name) == name
    assert SetSecret(name=name, value="co_z" + "1" * 20).name == name


@pytest.mark.parametrize("name", ["", "A", "a_b", "a:b", "a/b", ".", "..", "-a", "a-", "a b", "a\n", "ä", "a" * 64])
def test_other_names_are_refused_by_the_command_and_by_the_method(name: str) -> None:
    with pytest.raises(InvalidInput, match="can't be the name of a secret"):
        check_name(name)
    with pytest.raises(ValidationError):
        SetSecret(name=name, value="co_z" + "1" * 20)


@pytest.mark.parametrize("value", ["x", "two\nlines\n", "ü" * (MAX_VALUE_BYTES // 2), " "], ids=range(4))
def test_a_value_is_any_text_up_to_the_limit(value: str) -> None:
    assert check_value(value) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "is empty"),
        ("ü" * (MAX_VALUE_BYTES // 2) + "x", "has 65537 bytes"),
        ("hunter2\0", "NUL"),
        ("hunter2\ud800", "UTF-8"),
        (["hunter2"], "must be a text"),
        (None, "must be a text"),
    ],
    ids=["empty", "long", "nul", "surrogate", "list", "none"],
)
def test_another_value_is_refused_and_is_not_in_the_message(value: object, text: str) -> None:
    with pytest.raises(InvalidInput, match=text) as refused:
        check_value(value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("stored", [None, "x", {}, {"version": "a", "at": 1, "by": "co_z1"}])
def test_a_malformed_state_is_none(stored: object) -> None:
    assert SecretState.parse(stored) is None
