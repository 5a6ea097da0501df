"""`reside cluster delete`: what is shown, what it asks for, and what it removes on the operator's machine."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from reside.access.target import Target
from reside.cli import config, crash, deleting, project
from reside.cli.config import Account, Cluster, Config
from reside.model.errors import InvalidInput, ResideError
from reside.seed import steps

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


def _found(monkeypatch: pytest.MonkeyPatch, alpha: str | None) -> list[Target]:
    """Let a namespace have a cluster with this Alpha; return the targets whose objects were deleted."""
    deleted: list[Target] = []

    async def look(_target: Target) -> deleting._Present:
        return deleting._Present(["Secret/alpha"], "uid-1", alpha)

    monkeypatch.setattr(deleting, "_look", look)
    monkeypatch.setattr(steps, "delete_all", deleted.append)
    monkeypatch.setattr(project, "forget", lambda _name, _uid, _namespace: None)
    return deleted


def _configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    cluster = Cluster(name="east", namespace="reside", alpha_replica_id="co_zEast")
    config.change(lambda current: current.with_account(ADMIN).with_cluster(cluster, "admin"))
    return cluster


def test_another_cluster_at_the_place_of_a_configured_one_is_not_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kubeconfig's current context may have changed since."""
    cluster, deleted = _configured(tmp_path, monkeypatch), _found(monkeypatch, "co_zWest")
    target = Target("reside", "port-forward", None, None, 1.0)
    with pytest.raises(InvalidInput, match=r"another cluster than east .* its Alpha is co_zWest, not co_zEast"):
        deleting.delete_cluster("east", target, yes=True, expected=cluster)
    for place in ({}, {"namespace": "reside", "kubeconfig": tmp_path / "kubeconfig"}):
        command: Any = deleting.delete
        with pytest.raises(InvalidInput, match="and no --cluster"):
            command(cluster="east", yes=True, **place)
    assert (deleted, [each.name for each in config.load().clusters]) == ([], ["east"])


@pytest.mark.parametrize(
    ("alpha", "kube_context", "left"),
    [
        ("co_zEast", "named", []),
        ("co_zWest", None, ["east"]),
        (None, None, []),
        (None, "another", ["east"]),
    ],
    ids=["by its Alpha", "another Alpha", "by its place", "another place"],
)
def test_only_the_deleted_cluster_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alpha: str | None, kube_context: str | None, left: list[str]
) -> None:
    _configured(tmp_path, monkeypatch)
    deleted = _found(monkeypatch, alpha)
    target = Target("reside", "port-forward", None, kube_context, 1.0)
    deleting.delete_cluster("east", target, yes=True)
    assert deleted == [target]
    assert [each.name for each in config.load().clusters] == left
