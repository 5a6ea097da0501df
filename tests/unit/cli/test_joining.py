"""A cluster that is reached by its domain alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from typer.testing import CliRunner

from reside.cli import config, joining
from reside.cli.cluster import app
from reside.cli.session import jazz_of, replica_of, target_of
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

ALPHA = "co_z2ABC"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config"


def add(*arguments: str) -> config.Cluster:
    done = CliRunner().invoke(app, ["add", "far", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return config.load().cluster("far")


@pytest.mark.parametrize("given", ["Example.org", "https://example.org/", "wss://example.org"])
def test_every_form_of_a_domain_means_https(given: str) -> None:
    assert joining.endpoint_url(given) == "https://example.org"


def test_a_domain_may_have_a_port() -> None:
    assert joining.endpoint_url("example.org:8443") == "https://example.org:8443"


@pytest.mark.parametrize(
    "given", ["http://example.org", "ws://example.org", "example.org/path", "", "me@example.org", "-"]
)
def test_what_is_not_a_domain_or_without_a_certificate_is_refused(given: str) -> None:
    with pytest.raises(InvalidInput, match="is not the domain of a cluster: use HOST"):
        joining.endpoint_url(given)


@pytest.mark.anyio
async def test_an_added_cluster_is_reached_by_its_domain_alone() -> None:
    cluster = config.Cluster(name="far", endpoint="https://example.org:8443", alpha_replica_id=ALPHA, access="endpoint")
    async with jazz_of(cluster) as jazz, replica_of(cluster, "greeter") as greeter:
        assert (jazz, greeter) == ("wss://example.org:8443", "https://example.org:8443")
    with pytest.raises(InvalidInput, match="cluster far is reached by its domain alone: run it on a machine"):
        target_of(cluster)


def test_the_command_adds_cluster_account_and_context(folder: Path) -> None:
    cluster = add("example.org", "--alpha", ALPHA, "--account", "me")
    assert (cluster.endpoint, cluster.alpha_replica_id, cluster.namespace) == ("https://example.org", ALPHA, None)
    found = config.load()
    assert found.context() == config.Context(name="far", cluster="far", account="me")
    assert [account.name for account in found.accounts] == ["me"]
    [stored] = yaml.safe_load((folder / "config.yaml").read_text())["clusters"]
    assert stored["access"] == "endpoint"


def test_a_cluster_that_is_elsewhere_is_not_replaced(folder: Path) -> None:
    add("example.org", "--alpha", ALPHA, "--account", "me")
    assert add("example.org", "--alpha", "co_z3DEF", "--account", "me").alpha_replica_id == "co_z3DEF"
    done = CliRunner().invoke(app, ["add", "far", "example.com", "--alpha", ALPHA])
    assert str(done.exception) == (
        "the configuration has another cluster far (https://example.org): choose another name"
    )
    assert config.load().cluster("far").endpoint == "https://example.org"


def test_a_wrong_account_of_alpha_is_refused_before_anything_is_stored(folder: Path) -> None:
    done = CliRunner().invoke(app, ["add", "far", "example.org", "--alpha", "alpha"])
    assert isinstance(done.exception, InvalidInput)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("members", "missing"),
    [
        ({"access": "endpoint"}, "needs an endpoint"),
        ({"access": "endpoint", "endpoint": "http://example.org"}, "https://HOST"),
        ({"access": "direct"}, "needs a namespace"),
    ],
)
def test_a_cluster_that_can_not_be_reached_is_refused(folder: Path, members: dict[str, str], missing: str) -> None:
    folder.mkdir()
    cluster = {"name": "far", "alphaReplicaId": ALPHA, **members}
    (folder / "config.yaml").write_text(yaml.safe_dump({"clusters": [cluster]}))
    with pytest.raises(InvalidInput, match=missing):
        config.load()


def test_the_domain_is_asked_for_the_account_of_alpha_and_the_answer_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(endpoint: str) -> str:
        assert endpoint == "https://example.org"
        return ALPHA

    monkeypatch.setattr(joining, "ask_for_alpha", ask)
    assert add("example.org").alpha_replica_id == ALPHA
    assert config.load().cluster("far").alpha_replica_id == ALPHA
