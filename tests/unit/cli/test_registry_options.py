"""The options of `reside cluster bootstrap` about registries become settings, or are refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.registry import authority

from reside.cli.cluster_options import ClusterOptions
from reside.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "cm9ib3Q6aHVudGVyMg=="


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    """Return the options of a cluster elsewhere."""
    names = ("alpha", "kubernetes-sentinel", "seed", "jazz", "etcd")
    images = {name: f"registry.reside.internal/reside/{name}@sha256:{'a' * 64}" for name in names}
    (tmp_path / "images.json").write_text(json.dumps(images))
    return {"images": tmp_path / "images.json", "kubeconfig": tmp_path / "kubeconfig"}


def test_repository_authority_and_credentials_are_settings_without_the_password(
    given: dict[str, Any], tmp_path: Path
) -> None:
    pem = authority()
    (tmp_path / "ca.pem").write_text(pem)
    (tmp_path / "config.json").write_text(json.dumps({"auths": {"ghcr.io": {"auth": PASSWORD}}}))
    found = ClusterOptions(
        **given,
        image_repository="ghcr.io/acme/reside",
        registry_ca=[f"ghcr.io={tmp_path / 'ca.pem'}"],
        registry_config=tmp_path / "config.json",
    ).settings()
    assert (found.image_repository, found.registry_authorities) == ("ghcr.io/acme/reside", {"ghcr.io": pem})
    assert found.registry_credentials
    assert PASSWORD not in found.to_json()


@pytest.mark.parametrize(
    ("option", "fault"),
    [
        ({"image_repository": "https://ghcr.io/acme"}, "--image-repository .*: an image repository is HOST/PATH"),
        ({"registry_ca": ["ca.pem"]}, "--registry-ca 'ca.pem' is not HOST=FILE"),
        ({"registry_ca": ["ghcr.io=/nowhere"]}, "--registry-ca ghcr.io=/nowhere: /nowhere can't be read"),
    ],
)
def test_a_wrong_option_is_named(given: dict[str, Any], option: dict[str, Any], fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault):
        ClusterOptions(**given, **option).settings()
