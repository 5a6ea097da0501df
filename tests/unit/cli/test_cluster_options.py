"""The options of `reside cluster bootstrap` and the environment become settings; an option goes first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.registry import authority

from reside.cli import cluster, cluster_options, main
from reside.cli.cluster_options import ClusterOptions, default_local
from reside.cli.config import Cluster
from reside.local import NoSuchClusterError
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from reside.seed.settings import BootstrapSettings


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


AUTHORITY = authority()
CREATED = Cluster(name="new", namespace="reside", alpha_replica_id="co_zAlpha")
SETTINGS: dict[str, dict[str, Any]] = {
    "--namespace east": {"namespace": "east"},
    "--kubeconfig {folder}/kube": {"kubeconfig": "{folder}/kube", "access": "port-forward"},
    "--domain east.example.org --cluster-issuer ca": {"domain": "east.example.org", "cluster_issuer": "ca"},
    "--default-placement-group fast": {"default_placement_group": "fast"},
    "--storage-class ssd --storage-size 5Gi": {"storage_class": "ssd", "storage_size": "5Gi"},
    "--jazz-mode open": {"jazz_mode": "open"},
    "--allowed-registry ghcr.io": {"allowed_registries": ("ghcr.io",)},
    "--request-expiry-hours 2.5 --request-history 7": {"request_expiry_hours": 2.5, "request_history": 7},
    "--traces-endpoint http://collector:4318": {"traces_endpoint": "http://collector:4318"},
    "--state-backend s3://bucket/prefix": {"state_backend": "s3://bucket/prefix"},
    "--secrets-provider awskms://alias/a?region=b": {"secrets_provider": "awskms://alias/a?region=b"},
    "--policy {folder}/policy.json": {"policy": {"levels": {"read-only-root": "mandatory"}}},
    "--network-policies full --ingress-namespace web": {"network_policies": "full", "ingress_namespace": "web"},
    "--ingress-class nginx --ingress-annotation a/b=c": {
        "ingress_class": "nginx",
        "ingress_annotations": {"a/b": "c"},
    },
    "--domain east.example.org --gateway web/public": {"domain": "east.example.org", "gateway": "web/public"},
    "--image-repository ghcr.io/acme/reside": {"image_repository": "ghcr.io/acme/reside"},
    "--registry-mirror ghcr.io=10.0.0.1:80": {"registry_mirrors": {"ghcr.io": "http://10.0.0.1:80"}},
    "--registry-ca ghcr.io={folder}/ca.pem": {"registry_authorities": {"ghcr.io": AUTHORITY}},
    "--deadline 60": {"deadline": 60.0},
}
"""Options as they are written, and the settings that they become."""


@pytest.mark.parametrize("written", SETTINGS)
@pytest.mark.parametrize("command", ["cluster bootstrap new", "cluster manifest"])
def test_an_option_of_the_command_line_becomes_a_setting(
    given: dict[str, Any], command: str, written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policy.json").write_text('{"levels": {"read-only-root": "mandatory"}}')
    (tmp_path / "ca.pem").write_text(AUTHORITY)
    found: list[BootstrapSettings] = []
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setattr(cluster, "render", lambda settings: found.append(settings) or "")
    monkeypatch.setattr(cluster, "bootstrap_cluster", lambda _name, settings, *_: found.append(settings) or CREATED)
    line = f"{command} {written} --images {given['images']}".replace("{folder}", str(tmp_path))
    assert main.run(line.split()) == 0
    for name, value in SETTINGS[written].items():
        expected = value.replace("{folder}", str(tmp_path)) if isinstance(value, str) else value
        assert getattr(found[0], name) == expected


def test_a_bootstrap_has_an_endpoint_an_account_and_events(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[tuple[Any, ...]] = []
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    monkeypatch.setattr(cluster, "bootstrap_cluster", lambda *given: found.append(given) or CREATED)
    line = "cluster bootstrap new --endpoint https://east.example.org --account ada --output json --images"
    assert main.run([*line.split(), str(given["images"])]) == 0
    ((name, _settings, account, endpoint, _steps),) = found
    assert (name, account, endpoint) == ("new", "ada", "https://east.example.org")
    result = {"event": "result", "cluster": "new", "namespace": "reside", "alphaAccount": "co_zAlpha"}
    assert json.loads(capsys.readouterr().out) == result


def test_a_bootstrap_stores_the_passwords_of_registries(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "login.json").write_text('{"auths": {"ghcr.io": {"auth": "bWU6c2VjcmV0"}}}')
    monkeypatch.setenv("RESIDE_CONFIG", str(tmp_path))
    found: list[Any] = []

    async def store(_target: object, login: object) -> None:
        found.append(login)

    monkeypatch.setattr(cluster.registry_login, "store_login", store)
    monkeypatch.setattr(cluster, "bootstrap_cluster", lambda _name, settings, *_: found.append(settings) or CREATED)
    line = f"cluster bootstrap new --registry-config {tmp_path / 'login.json'} --images {given['images']}"
    assert main.run(line.split()) == 0
    login, settings = found
    assert "ghcr.io" in str(login)
    assert settings.registry_credentials is True
