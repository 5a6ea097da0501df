"""The configuration file: private, replaced atomically, with clear errors."""

from __future__ import annotations

import fcntl
import stat
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from reside.cli import config
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

ACCOUNT = config.Account(name="admin", account_id="co_z1", encrypted_agent_secret="c2VjcmV0")
CLUSTER = config.Cluster(name="local", namespace="reside", alpha_replica_id="co_z2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config"


def test_a_missing_file_is_an_empty_configuration() -> None:
    assert config.load() == config.Config()


def test_what_is_saved_is_loaded_again_in_a_private_file(folder: Path) -> None:
    saved = config.Config().with_account(ACCOUNT).with_cluster(CLUSTER, "admin")
    config.change(lambda _: saved)
    assert config.load() == saved
    assert stat.S_IMODE((folder / "config.yaml").stat().st_mode) == 0o600
    assert sorted(path.name for path in folder.iterdir()) == ["config.lock", "config.yaml"]


def test_members_have_the_names_of_the_model(folder: Path) -> None:
    config.change(lambda current: current.with_account(ACCOUNT).with_cluster(CLUSTER, "admin"))
    text = (folder / "config.yaml").read_text()
    for member in ("currentContext", "contexts", "clusters", "accounts", "alphaReplicaId", "encryptedAgentSecret"):
        assert f"{member}:" in text


def test_adding_a_cluster_sets_the_current_context_and_replaces_an_earlier_entry() -> None:
    first = config.Config().with_account(ACCOUNT).with_cluster(CLUSTER, "admin")
    again = first.with_cluster(CLUSTER.model_copy(update={"alpha_replica_id": "co_z3"}), "admin")
    assert again.context() == config.Context(name="local", cluster="local", account="admin")
    assert [c.alpha_replica_id for c in again.clusters] == ["co_z3"]


def test_an_account_name_is_used_once() -> None:
    with pytest.raises(InvalidInput, match="exists already"):
        config.Config().with_account(ACCOUNT).with_account(ACCOUNT)


@pytest.mark.parametrize(
    ("text", "message"), [("clusters: [", "is not YAML"), ("kube: yes", "kube"), ("accounts: [{name: a}]", "accountId")]
)
def test_a_broken_file_is_named_with_its_fault(folder: Path, text: str, message: str) -> None:
    folder.mkdir()
    (folder / "config.yaml").write_text(text)
    with pytest.raises(InvalidInput, match=message):
        config.load()


def test_without_a_context_the_message_says_how_to_get_one() -> None:
    with pytest.raises(InvalidInput, match="reside cluster bootstrap"):
        config.Config().context()


def test_an_unknown_name_is_reported_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"cluster 'other' .*known: local"):
        config.Config().with_account(ACCOUNT).with_cluster(CLUSTER, "admin").cluster("other")


def test_a_failed_write_leaves_the_old_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.change(lambda current: current.with_account(ACCOUNT))

    def broken(_descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", broken)
    with pytest.raises(InvalidInput, match="can't be written: disk full: correct that, or name another folder in"):
        config.change(lambda _: config.Config())
    assert config.load().accounts == (ACCOUNT,)
    assert sorted(path.name for path in folder.iterdir()) == ["config.lock", "config.yaml"]


def test_no_change_is_lost_among_commands_that_run_at_the_same_time() -> None:
    accounts = [ACCOUNT.model_copy(update={"name": f"account-{number}"}) for number in range(24)]
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda account: config.change(lambda now: now.with_account(account)), accounts))
    assert {account.name for account in config.load().accounts} == {account.name for account in accounts}


def test_a_command_that_holds_the_file_for_too_long_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "_LOCK_WITHIN_S", 0.05)
    folder.mkdir()
    with (folder / "config.lock").open("a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(InvalidInput, match=r"config.lock for 0.05 s: end it"):
            config.change(lambda current: current.with_account(ACCOUNT))
    assert config.change(lambda current: current.with_account(ACCOUNT)).accounts == (ACCOUNT,)


def test_the_used_context_is_one_that_exists() -> None:
    other = CLUSTER.model_copy(update={"name": "other"})
    both = config.Config().with_account(ACCOUNT).with_cluster(CLUSTER, "admin").with_cluster(other, "admin")
    assert both.using("local").context().cluster == "local"
    with pytest.raises(InvalidInput, match=r"context 'third' .*known: local, other"):
        both.using("third")
