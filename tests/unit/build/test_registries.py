"""The registries of the operator's side, from the environment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.registry import authority

from reside.build import registries
from reside.model.cluster import ClusterSettings
from reside.model.constants import ENV_PREFIX
from reside.model.errors import InvalidInput
from reside.registry import ImageReference

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RESIDE_LOCAL_STATE", str(tmp_path))
    for variable in (registries.AUTHORITIES_VARIABLE, registries.REPOSITORY_VARIABLE):
        monkeypatch.delenv(variable, raising=False)


def test_the_variables_are_those_of_alphas_pod() -> None:
    known = {f"{ENV_PREFIX}{member.upper()}" for member in ClusterSettings.model_fields}
    assert {registries.AUTHORITIES_VARIABLE, registries.REPOSITORY_VARIABLE} <= known


def test_images_are_in_the_repository_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    image = ImageReference.parse("registry.reside.internal/reside/runtime:latest")
    assert registries.client_of_environment("default").located(image) == image
    monkeypatch.setenv(registries.REPOSITORY_VARIABLE, "ghcr.io/acme/reside")
    found = registries.client_of_environment("default").located(image)
    assert str(found) == "ghcr.io/acme/reside/runtime:latest"
    monkeypatch.setenv(registries.REPOSITORY_VARIABLE, "https://ghcr.io/acme")
    with pytest.raises(InvalidInput, match=r"RESIDE_IMAGE_REPOSITORY .*: an image repository is"):
        registries.client_of_environment("default")


def test_authorities_are_files_or_documents(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pem = authority()
    (tmp_path / "ca.pem").write_text(pem)
    given = {"a.example.org": str(tmp_path / "ca.pem"), "b.example.org": pem}
    monkeypatch.setenv(registries.AUTHORITIES_VARIABLE, json.dumps(given))
    assert registries.authorities() == {"a.example.org": pem, "b.example.org": pem}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("ca.pem", "must be JSON such as"),
        ('{"a": 1}', "must be JSON such as"),
        ('{"a": "/nowhere"}', "of a: /nowhere can't be read"),
        ('{"a": "/dev/null"}', "of a: /dev/null is not a PEM file"),
    ],
)
def test_a_wrong_authority_is_refused(monkeypatch: pytest.MonkeyPatch, text: str, fault: str) -> None:
    monkeypatch.setenv(registries.AUTHORITIES_VARIABLE, text)
    with pytest.raises(InvalidInput, match=fault):
        registries.authorities()
