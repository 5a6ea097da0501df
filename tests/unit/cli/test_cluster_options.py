"""The options of `reside cluster bootstrap` and the environment become settings; an option goes first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from reside.cli import cluster_options
from reside.cli.cluster_options import ClusterOptions, default_local
from reside.cli.shared_options import with_options
from reside.local import NoSuchClusterError
from reside.model.errors import InvalidInput


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the option that names images, on a machine without a local cluster."""
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(tmp_path))
    names = ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
    images = {name: f"registry.reside.internal/reside/{name}@sha256:{'a' * 64}" for name in names}
    (tmp_path / "images.json").write_text(json.dumps(images))
    return {"images": tmp_path / "images.json"}


def test_options_that_are_not_given_leave_the_defaults(given: dict[str, Any]) -> None:
    found = ClusterOptions(**given).settings()
    assert (found.namespace, found.network_policies, found.access) == ("reside", "ingress", "port-forward")
    assert (found.storage_size, found.deadline, found.registry_mirrors) == ("1Gi", 300, {})


def test_an_option_goes_before_the_environment(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESIDE_BOOTSTRAP_NAMESPACE", "east")
    monkeypatch.setenv("RESIDE_BOOTSTRAP_STORAGE_CLASS", "slow")
    monkeypatch.setenv("RESIDE_BOOTSTRAP_NETWORK_POLICIES", "full")
    monkeypatch.setenv("RESIDE_BOOTSTRAP_REGISTRY_MIRRORS", '{"ghcr.io": "10.0.0.1:80"}')
    found = ClusterOptions(**given, storage_class="fast", storage_size="5Gi", deadline=60.0).settings("there")
    assert (found.namespace, found.storage_class, found.network_policies) == ("east", "fast", "full")
    assert (found.storage_size, found.deadline, found.kube_context) == ("5Gi", 60, "there")
    assert found.registry_mirrors == {"ghcr.io": "http://10.0.0.1:80"}


def test_a_policy_is_a_file(given: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text('{"levels": {"read-only-root": "mandatory"}}')
    found = ClusterOptions(**given, policy=tmp_path / "policy.json").settings()
    assert found.policy == {"levels": {"read-only-root": "mandatory"}}


@pytest.mark.parametrize(
    ("option", "fault"), [({"request_history": 0}, "request_history"), ({"jazz_mode": "closed"}, "jazz_mode")]
)
def test_a_value_that_is_not_allowed_is_refused(given: dict[str, Any], option: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        ClusterOptions(**given, **option).settings()


class OnlyTeam:
    """A machine whose only local cluster is `team`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def info(self) -> None:
        """Return nothing if there is such a cluster."""
        if self._name != "team":
            raise NoSuchClusterError(self._name, Path())


@pytest.mark.parametrize(("variable", "found"), [(None, None), ("", None), ("team", "team"), ("other", None)])
def test_a_local_cluster_that_the_environment_names_is_used_if_it_exists(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, found: str | None
) -> None:
    monkeypatch.setattr(cluster_options, "LocalCluster", OnlyTeam)
    monkeypatch.delenv("RESIDE_LOCAL_CLUSTER", raising=False)
    if variable is not None:
        monkeypatch.setenv("RESIDE_LOCAL_CLUSTER", variable)
    assert default_local(None, None) == found
    assert default_local("kubeconfig", None) is None
    assert default_local(None, "context") is None


OPTIONS = {
    "--allowed-registry": ("ghcr.io", "allowed_registries", ["ghcr.io"]),
    "--default-placement-group": ("fast", "default_placement_group", "fast"),
    "--ingress-namespace": ("web", "ingress_namespace", "web"),
    "--jazz-mode": ("open", "jazz_mode", "open"),
    "--network-policies": ("full", "network_policies", "full"),
    "--request-expiry-hours": ("2.5", "request_expiry_hours", 2.5),
    "--request-history": ("7", "request_history", 7),
    "--secrets-provider": ("awskms://alias/a?region=b", "secrets_provider", "awskms://alias/a?region=b"),
    "--state-backend": ("s3://bucket/prefix", "state_backend", "s3://bucket/prefix"),
    "--storage-size": ("5Gi", "storage_size", "5Gi"),
    "--traces-endpoint": ("http://collector:4318", "traces_endpoint", "http://collector:4318"),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_of_the_command_line_becomes_a_setting(given: dict[str, Any], option: str) -> None:
    written, name, value = OPTIONS[option]
    app, found = typer.Typer(), []

    @app.command()
    @with_options(ClusterOptions)
    def read(*, options: ClusterOptions) -> None:
        """Read the settings."""
        found.append(options.settings())

    done = CliRunner().invoke(app, [option, written, "--images", str(given["images"])])
    assert done.exception is None, done.output
    setting = getattr(found[0], name)
    assert (list(setting) if isinstance(value, list) else setting) == value
