"""The passphrase of a backup comes from a file, the environment or the terminal, and never from an argument.

What a restore needs on this machine is checked first.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from reside.cli import backups, config
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give neither a variable nor a terminal."""
    monkeypatch.delenv(backups.PASSPHRASE, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())


def test_the_first_line_of_a_file_is_taken_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(backups.PASSPHRASE, "of the environment")
    file = tmp_path / "passphrase"
    file.write_text("of the file\nand more\n")
    assert backups._passphrase(file, is_new=True).get_secret_value() == "of the file"
    assert backups._passphrase(None, is_new=True).get_secret_value() == "of the environment"


def test_a_missing_passphrase_says_how_to_give_one() -> None:
    with pytest.raises(InvalidInput, match="set RESIDE_BACKUP_PASSPHRASE, or name a file with --passphrase-file"):
        backups._passphrase(None, is_new=False)


def test_a_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--passphrase-file .*/missing can't be read"):
        backups._passphrase(tmp_path / "missing", is_new=False)


def test_only_a_new_passphrase_must_have_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(backups.PASSPHRASE, "short")
    assert backups._passphrase(None, is_new=False).get_secret_value() == "short"
    monkeypatch.setenv(backups.PASSPHRASE, "short")  # it was removed from the environment
    with pytest.raises(InvalidInput, match="fewer than 8 characters: choose a longer one") as error:
        backups._passphrase(None, is_new=True)
    assert "short" not in str(error.value).replace("shorter", "")


def test_a_restore_for_an_unknown_account_or_a_used_name_is_refused_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would end after minutes with an error, and a second run would find a namespace that is not empty."""
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    place: dict[str, Any] = {"cluster": "east", "namespace": "reside", "kubeconfig": tmp_path / "kubeconfig"}
    with pytest.raises(InvalidInput, match=r"account 'admin' is not in .*: create it"):
        backups.restore(file=tmp_path / "b", passphrase_file=None, account="admin", **place)
    admin = config.Account(name="admin", account_id="co_zAdmin", encrypted_agent_secret="x")
    east = config.Cluster(name="east", namespace="elsewhere", alpha_replica_id="co_zA")
    config.change(lambda current: current.with_account(admin).with_cluster(east, "admin"))
    with pytest.raises(InvalidInput, match=r"has another cluster east \(namespace elsewhere\): choose another name"):
        backups.restore(file=tmp_path / "b", passphrase_file=None, account="admin", **place)
