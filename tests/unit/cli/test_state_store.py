"""The object store and the key of the bootstrap's state: named by the environment, checked, and without credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from reside.cli import project, state_store
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

STORE = "s3://states/east?region=eu-central-1"


def test_without_a_store_the_state_is_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(state_store.STORE, raising=False)
    assert project.backend_url(tmp_path) == f"file://{tmp_path}?metadata=skip"
    assert state_store.store({state_store.STORE: ""}) is None
    assert state_store.key({}) is None


def test_a_store_takes_the_place_of_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(state_store.STORE, STORE)
    assert project.backend_url(tmp_path) == STORE
    key = "awskms://alias/reside?region=eu-central-1"
    assert state_store.key({state_store.KEY: key}) == key


@pytest.mark.parametrize("address", ["http://states", "states", "s3://states?secret_access_key=x"])
def test_what_is_no_store_or_has_credentials_is_refused(address: str) -> None:
    with pytest.raises(InvalidInput, match="RESIDE_STATE_STORE must "):
        state_store.store({state_store.STORE: address})


def test_what_is_no_key_is_refused() -> None:
    with pytest.raises(InvalidInput, match="RESIDE_STATE_KEY must be `passphrase`, or the address of a key"):
        state_store.key({state_store.KEY: "alias/reside"})


def test_what_pulumi_adds_to_the_stacks_file_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.east.yaml"
    with project._without_salt(file):
        file.write_text("secretsprovider: awskms://x\nencryptedkey: abc\nconfig:\n  reside:namespace: reside\n")
    assert file.read_text() == "config:\n  reside:namespace: reside\n"
