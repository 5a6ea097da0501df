"""Secrets at rest: encrypted with a key of this user, in a keyring or in a private file."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from reside.cli import keyrings, vault
from reside.cli.secret_store import FileStore
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


class MemoryStore:
    """A keyring in memory."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def read(self, name: str) -> str | None:
        """Return the value of this name."""
        return self.values.get(name)

    def create(self, name: str, value: str) -> str:
        """Store it unless there is one."""
        return self.values.setdefault(name, value)


def test_a_secret_round_trips_and_is_not_in_the_cipher_text() -> None:
    box = vault.Vault(MemoryStore())
    encrypted = box.encrypt("sealerSecret_z1/signerSecret_z2")
    assert "Secret" not in encrypted
    assert box.decrypt(encrypted, "account") == "sealerSecret_z1/signerSecret_z2"


def test_two_encryptions_differ() -> None:
    box = vault.Vault(MemoryStore())
    assert box.encrypt("same") != box.encrypt("same")


@pytest.mark.parametrize("damage", ["", "not base64!", "AAAA"])
def test_another_key_or_damage_is_an_error_that_names_the_secret(damage: str) -> None:
    encrypted = damage or vault.Vault(MemoryStore()).encrypt("secret")
    with pytest.raises(InvalidInput, match="account 'joe'"):
        vault.Vault(MemoryStore()).decrypt(encrypted, "account 'joe'")


def test_a_file_key_is_private_and_kept(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "new")
    assert store.read("secrets") is None
    assert store.create("secrets", "first") == "first"
    assert store.create("secrets", "second") == "first"
    assert store.read("secrets") == "first"
    assert stat.S_IMODE(store.path("secrets").stat().st_mode) == 0o600
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["secrets.key"]


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    store.create("secrets", "value")
    store.path("secrets").chmod(0o644)
    with pytest.raises(InvalidInput, match="chmod 600"):
        store.read("secrets")


def test_the_bootstrap_passphrase_is_created_once() -> None:
    store = MemoryStore()
    assert vault.bootstrap_passphrase(store) == vault.bootstrap_passphrase(store)
    assert len(vault.bootstrap_passphrase(store)) >= 32


def test_without_a_keyring_files_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setattr(keyrings, "keyring_works", lambda: False)
    assert isinstance(vault.store(), FileStore)


def test_existing_files_win_over_a_keyring_that_appeared_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setattr(keyrings, "keyring_works", lambda: True)
    assert isinstance(vault.store(), keyrings.KeyringStore)
    FileStore(tmp_path).create("secrets", "value")
    assert isinstance(vault.store(), FileStore)
