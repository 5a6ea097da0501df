"""Which environment variables require another engine, and that the identity does not reveal them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from reside.resident import EngineUnavailable
from reside.resident.environment import command_environment, find_binary, identity

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def binary(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_text("one")
    path.chmod(0o755)
    return path


def test_the_environment_is_the_stock_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    found = command_environment("pulumi", {"PULUMI_HOME": "/home"})
    assert found["FROM_OUTSIDE"] == "1"
    assert found["PULUMI_HOME"] == "/home"
    assert found["PULUMI_AUTOMATION_API"] == "true"
    assert found["PATH"] == os.environ["PATH"]


def test_an_absolute_command_puts_its_folder_first_on_the_path() -> None:
    path = command_environment("/opt/pulumi/bin/pulumi", {"PATH": "/usr/bin"})["PATH"]
    assert path == "/opt/pulumi/bin:/usr/bin"


@pytest.mark.parametrize("name", ["PWD", "TERM", "SHLVL", "PULUMI_DEBUG_COMMANDS"])
def test_variables_of_the_shell_need_no_other_engine(binary: Path, name: str) -> None:
    one, other = (identity(binary, command_environment("pulumi", {name: value})) for value in ("a", "b"))
    assert one == other


@pytest.mark.parametrize("name", ["PULUMI_CONFIG_PASSPHRASE", "PULUMI_BACKEND_URL", "PULUMI_HOME", "KUBECONFIG"])
def test_variables_that_affect_operations_need_another_engine(binary: Path, name: str) -> None:
    one, other = (identity(binary, command_environment("pulumi", {name: value})) for value in ("a", "b"))
    assert one != other


def test_another_binary_needs_another_engine(binary: Path) -> None:
    before = identity(binary, {})
    binary.write_text("another")
    assert identity(binary, {}) != before


def test_the_identity_is_a_hash(binary: Path) -> None:
    assert re.fullmatch("[0-9a-f]{32}", identity(binary, {"PULUMI_CONFIG_PASSPHRASE": "hunter2"}))


def test_a_missing_binary_is_named_with_the_cure() -> None:
    with pytest.raises(EngineUnavailable, match="no-such-engine is missing: run `make tools`"):
        find_binary("no-such-engine", {"PATH": "/nowhere"})
