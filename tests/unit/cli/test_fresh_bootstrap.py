"""`--create-local`, `--delete-local`, `--clear` and `--override`: what they start and remove, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from reside.cli import cluster, config, deleting, fresh, main
from reside.cli.cluster_options import ClusterOptions
from reside.cli.config import Account, Cluster, Config
from reside.cli.fresh import FreshOptions
from reside.model.errors import InvalidInput
from reside.seed import settings

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings

IMAGES = {
    name: f"registry.reside.internal/reside/{name}@sha256:{'a' * 64}"
    for name in ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
}


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was done to local clusters, in place of doing it."""
    events: list[str] = []

    def local(name: str) -> Any:
        return SimpleNamespace(down=lambda *, delete_state: events.append(f"delete {name} {delete_state}"))

    def start(name: str) -> str:
        events.append(f"start {name}")
        return name

    def build(info: str) -> Path:
        events.append(f"build for {info}")
        return Path("built.json")

    monkeypatch.setattr(fresh, "LocalCluster", local)
    monkeypatch.setattr(fresh.starting, "start_kubernetes", start)
    monkeypatch.setattr(fresh.starting, "build_images", build)
    return events


def test_a_local_cluster_is_started_with_images_in_its_registry(done: list[str]) -> None:
    found = fresh.prepare_local(FreshOptions(create_local=True), ClusterOptions())
    assert (found.local, found.images) == ("default", Path("built.json"))
    assert done == ["start default", "build for default"]


def test_a_local_cluster_is_deleted_first(done: list[str]) -> None:
    wanted = FreshOptions(create_local=True, delete_local=True, yes=True)
    fresh.prepare_local(wanted, ClusterOptions(local="other"))
    assert done == ["delete other True", "start other", "build for other"]


def test_nothing_is_deleted_without_a_confirmation(done: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, what: str) -> None:
        raise InvalidInput(f"{name}: {what}")

    monkeypatch.setattr(deleting, "confirm_name", refuse)
    with pytest.raises(InvalidInput, match="default: the local Kubernetes cluster default"):
        fresh.prepare_local(FreshOptions(create_local=True, delete_local=True), ClusterOptions())
    assert done == []


@pytest.mark.parametrize(
    ("wanted", "options", "reason"),
    [
        (FreshOptions(delete_local=True), ClusterOptions(), "add --create-local"),
        (FreshOptions(create_local=True), ClusterOptions(kubeconfig=Path("k")), "omit --kubeconfig"),
    ],
)
def test_contradictions_are_refused(
    done: list[str], wanted: FreshOptions, options: ClusterOptions, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        fresh.prepare_local(wanted, options)
    assert done == []


def test_without_these_options_nothing_is_started(done: list[str]) -> None:
    options = ClusterOptions()
    assert fresh.prepare_local(FreshOptions(), options) is options
    assert done == []


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure the cluster `east` in namespace `reside` of the context `there`."""
    admin = Account(name="admin", account_id="co_zA", encrypted_agent_secret="x")
    cluster = Cluster(name="east", namespace="reside", alpha_replica_id="co_zA", kube_context="there")
    found = Config(accounts=(admin,)).with_cluster(cluster, "admin")
    monkeypatch.setattr(config, "load", lambda: found)


def place(**members: str) -> BootstrapSettings:
    """Return the settings of a cluster in namespace `reside` of the context `there`, or elsewhere."""
    return settings.parse({"namespace": "reside", "kube_context": "there", "images": IMAGES, **members}, "test")


def test_the_same_cluster_is_bootstrapped_again(known: None) -> None:
    fresh.check_name(FreshOptions(), "east", place())
    fresh.check_name(FreshOptions(), "west", place(namespace="other"))


def test_the_same_cluster_may_have_got_a_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = Account(name="admin", account_id="co_zA", encrypted_agent_secret="x")
    cluster = Cluster(
        name="east", namespace="reside", alpha_replica_id="co_zA", kube_context="there", endpoint="https://old.example"
    )
    monkeypatch.setattr(config, "load", lambda: Config(accounts=(admin,)).with_cluster(cluster, "admin"))
    fresh.check_name(FreshOptions(), "east", place())
    fresh.check_name(FreshOptions(), "east", place(domain="new.example", cluster_issuer="ca"))


@pytest.mark.parametrize("elsewhere", [{"namespace": "other"}, {"kube_context": "here"}, {"kubeconfig": "/k"}])
def test_another_cluster_of_the_configuration_is_replaced_only_if_that_is_wanted(
    known: None, elsewhere: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput, match=r"another cluster east \(namespace reside, there\): choose another name"):
        fresh.check_name(FreshOptions(), "east", place(**elsewhere))
    fresh.check_name(FreshOptions(override=True), "east", place(**elsewhere))


def test_a_cluster_is_cleared_only_if_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    deleted: list[tuple[str, bool]] = []
    monkeypatch.setattr(deleting, "delete_cluster", lambda name, _target, *, yes: deleted.append((name, yes)))
    fresh.clear(FreshOptions(), "east", place().target)
    assert deleted == []
    fresh.clear(FreshOptions(clear=True, yes=True), "east", place().target)
    assert deleted == [("east", True)]


def test_the_options_of_the_command_line_remove_and_start(
    done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A cluster of the same name elsewhere, a local cluster, and the namespace are replaced, without a question."""
    document = {"accounts": [], "clusters": [{"name": "new", "namespace": "old", "alphaReplicaId": "co_zA"}]}
    (tmp_path / "config.yaml").write_text(json.dumps(document))
    (tmp_path / "images.json").write_text(json.dumps(IMAGES))
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    local = {"access": "direct", "kubeconfig": "/k", "kube_context": "c"}
    monkeypatch.setattr(settings, "local_cluster", lambda name: done.append(f"use {name}") or local)
    monkeypatch.setattr(deleting, "delete_cluster", lambda name, _target, *, yes: done.append(f"clear {name} {yes}"))
    created = Cluster(name="new", namespace="reside", alpha_replica_id="co_zA")
    monkeypatch.setattr(cluster, "bootstrap_cluster", lambda name, *_: done.append(f"bootstrap {name}") or created)
    images = str(tmp_path / "images.json")
    line = "cluster bootstrap new --local team --create-local --delete-local --clear --yes --images"
    assert main.run([*line.split(), images]) == 1
    assert "choose another name, or add --override" in capsys.readouterr().err
    done.clear()
    line = "cluster bootstrap new --local team --create-local --delete-local --clear --override --yes --images"
    assert main.run([*line.split(), images]) == 0
    assert done == [
        "delete team True",
        "start team",
        "build for team",
        "use team",
        "clear new True",
        "bootstrap new",
    ]
