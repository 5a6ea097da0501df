"""Help needs no code of commands: their declarations are a file that says what the code says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reside.cli import declarations, main
from tools.cli_reference import DECLARATIONS
from tools.cli_reference import declarations as declared_by_the_code

HEAVY = (
    "asyncio",
    "cryptography",
    "httpx2",
    "lightkube",
    "nacl",
    "pulumi",
    "pydantic",
    "reside.cli.config",
    "reside.jazz",
    "stamina",
    "structlog",
    "yaml",
)
"""Modules that the help of no command imports."""
KNOWN = declarations.load()


def test_the_file_is_current() -> None:
    assert DECLARATIONS.read_text() == declared_by_the_code(), "run `python tools/cli_reference.py`"


@pytest.mark.parametrize("path", [path for path in KNOWN if declarations.is_complete(KNOWN, path)])
def test_the_help_of_a_command_is_that_of_its_code(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [*path.split(), "--help"]
    assert main.run(arguments) == 0
    declared = capsys.readouterr().out
    assert main._call(main.command(arguments), arguments) == 0
    assert declared == capsys.readouterr().out
    assert "Usage" in declared


def test_the_help_of_each_command_imports_no_heavy_module() -> None:
    code = f"""
import sys
from reside.cli import declarations
from reside.cli.main import run
for path in ["", *declarations.load()]:
    assert run([*path.split(), "--help"]) == 0, path
    found = [name for name in {HEAVY!r} if name in sys.modules]
    assert not found, f"reside {{path}} --help imports {{found}}"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ([], ""),
        (["--help"], ""),
        (["nonsense", "replica"], ""),
        (["replica"], "replica"),
        (["replica", "lod"], "replica"),
        (["replica", "--help", "list"], "replica list"),
        (["explain", "replica", "list"], "explain"),
        (["replica", "canary", "promote", "greeter"], "replica canary promote"),
    ],
)
def test_the_path_is_what_the_first_words_name(arguments: list[str], path: str) -> None:
    assert declarations.named_path(KNOWN, arguments) == path


def test_help_as_the_value_of_an_option_runs_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RESIDE_CONFIG", "/proc/none")
    assert main.run(["permission", "clear", "ada", "--reason", "--help"]) == 1
    assert "no cluster is configured" in capsys.readouterr().err
