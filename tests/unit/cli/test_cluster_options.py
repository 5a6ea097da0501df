"""The options of `reside cluster bootstrap` and the environment become settings; an option goes first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reside.cli.cluster_options import ClusterOptions
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


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
