"""`reside identity` of a folder; tests/integration/build has that of an image."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from reside.cli.identity import _is_of
from reside.cli.main import run
from reside.cli.new import Kind, make, parse_names

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of a new replica with a contract of its own."""
    make(tmp_path / "hello", Kind.replica, parse_names("hello", "ghcr.io/acme"))
    return tmp_path / "hello"


def test_the_identity_of_a_folder_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["identity", str(folder)]) == 0
    assert run(["identity", str(folder / "hello.v1")]) == 0
    assert capsys.readouterr().out == "ghcr.io/acme/hello\nghcr.io/acme/hello.v1\n"


def test_a_program_gets_the_contracts_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["identity", str(folder), "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "identity": "ghcr.io/acme/hello",
        "type": "replica",
        "implements": ["ghcr.io/acme/hello.v1"],
        "requires": [],
    }


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("./nowhere", "is not a folder"),
        ("/nowhere", "is not a folder"),
        ("Not An Image", "error:"),
        (".", "contains neither"),
    ],
)
def test_what_is_neither_a_folder_nor_an_image_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], source: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["identity", source]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "image", "is_of"),
    [
        ("ghcr.io/acme/hello", "ghcr.io/acme/hello", True),
        ("ghcr.io/acme/hello", "ghcr.io/other/hello", False),
        ("registry.reside.internal/reside/contracts/alpha.v1", "ghcr.io/acme/reside/contracts/alpha.v1", True),
        ("registry.reside.internal/reside/contracts/alpha.v1", "ghcr.io/acme/reside/contracts/beta.v1", False),
        ("registry.reside.internal/other/alpha.v1", "ghcr.io/acme/other/alpha.v1", False),
    ],
)
def test_images_of_reside_have_an_identity_in_each_cluster(name: str, image: str, is_of: bool) -> None:
    assert _is_of(name, image) is is_of
