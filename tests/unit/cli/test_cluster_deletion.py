"""`reside cluster delete`: what is shown, what it asks for, and what it removes on the operator's machine."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from reside.cli import crash, deleting
from reside.cli.config import Account, Cluster, Config
from reside.model.errors import InvalidInput, ResideError

if TYPE_CHECKING:
    from pathlib import Path

ADMIN = Account(name="admin", account_id="co_zAdmin", encrypted_agent_secret="x")


def test_the_list_has_a_line_for_each_kind_and_says_that_data_is_lost() -> None:
    found = ["Secret/b", "Secret/a", "PersistentVolumeClaim/jazz"]
    assert deleting.listing("reside", found) == [
        "these objects of namespace reside are deleted:",
        "  PersistentVolumeClaim: jazz",
        "  Secret: a, b",
        "the data in the volumes jazz is lost: `reside cluster backup` saves it",
    ]
    assert deleting.listing("reside", []) == ["namespace reside has nothing of a cluster"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_deleted_without_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("east\n"))
    with pytest.raises(InvalidInput, match="no terminal to confirm the deletion: use --yes"):
        deleting.confirm_name("east", "the cluster")
    for answer in ("\n", "y\n", "West\n"):
        monkeypatch.setattr("sys.stdin", _Terminal(answer))
        with pytest.raises(ResideError, match="nothing is deleted"):
            deleting.confirm_name("east", "the cluster")
    monkeypatch.setattr("sys.stdin", _Terminal("east\n"))
    deleting.confirm_name("east", "the cluster")


def test_the_configuration_keeps_accounts_and_other_clusters() -> None:
    before = Config(accounts=(ADMIN,))
    for name in ("west", "east"):
        before = before.with_cluster(Cluster(name=name, namespace=name, alpha_replica_id="co_zA"), "admin")
    after = before.without_cluster("east")
    assert [cluster.name for cluster in after.clusters] == ["west"]
    assert ([context.name for context in after.contexts], after.current_context) == (["west"], "west")
    assert after.accounts == (ADMIN,)
    empty = after.without_cluster("west")
    assert (empty.contexts, empty.current_context) == ((), None)


def test_the_state_of_a_deleted_cluster_is_removed_and_no_other(tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi/stacks/reside"
    folder.mkdir(parents=True)
    names = ("east.json", "east.json.bak", "east.json.of-1.old", "eastern.json")
    for name in names:
        (folder / name).touch()
    (tmp_path / "east.cluster").write_text("1\n")
    crash.remove_state(tmp_path, "east", "2")
    assert {path.name for path in folder.iterdir()} == set(names), "the state is that of another Kubernetes"
    crash.remove_state(tmp_path, "east", "1")
    assert {path.name for path in folder.iterdir()} == {"east.json.of-1.old", "eastern.json"}
    assert not (tmp_path / "east.cluster").exists()
